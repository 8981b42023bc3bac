"""News for the apps above. A signal is a hint; the rows are the truth."""

from django.dispatch import Signal

# Sent inside the transaction that took a customer's access away (signed out, blocked, delegation
# revoked): customer_id. Open chats of the customer must end.
access_revoked = Signal()

# Sent once the demo shop and its people are there, so that others add theirs: shop_id.
demo_seeded = Signal()

# The shop does not take our own name and secret. Sends: shop_id.
client_refused = Signal()
