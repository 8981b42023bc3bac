"""Clients of the outside. Nothing else in the product speaks to a shop's orders API."""
