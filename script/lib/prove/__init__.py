"""`script/prove`: the whole product under faults, and what it did held against the shop's ledger."""
