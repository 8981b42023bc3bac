"""News for the layers above. A receiver does nothing but enqueue: the row is the truth."""

from django.dispatch import Signal

# An operation left a state in which a task was waiting for it. Sends: operation_id, task_id.
operation_moved = Signal()

# The shop has told something about an operation. Sends: operation_id, task_id.
evidence_came = Signal()

# A shop that was not called for a while is called again. Sends: shop_id.
shop_answers = Signal()
