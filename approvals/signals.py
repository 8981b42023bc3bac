"""News for the layer above. A receiver does nothing but enqueue or ring: the row is the truth."""

from django.dispatch import Signal

# An approval was asked for, decided, expired or withdrawn. Sends: approval_id, operation_id,
# task_id, shop_id.
approval_changed = Signal()
