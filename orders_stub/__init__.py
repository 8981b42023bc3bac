"""A pretend shop: storefront, orders, parcels, refunds, token exchange and faults.

It stands for somebody else's system. Nothing of Countersign imports it and it imports
nothing of Countersign; the two meet over HTTP only. See README.md for the contract.
"""
