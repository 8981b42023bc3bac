"""Which hashes prove that some leaves are under the root of their tree, without showing the others."""

import hashlib
from collections.abc import Iterable, Sequence


def prove(leaves: Sequence[bytes], positions: Iterable[int]) -> list[bytes]:
    """The hashes that somebody who has the leaves at these positions needs to compute the root.

    Level by level from the leaves, left to right; empty when all leaves are known. The tree is that of
    `canonical.merkle_root`. Raises IndexError for a position that is none.
    """
    known = set(positions)
    if known and not 0 <= min(known) <= max(known) < len(leaves):
        raise IndexError("a position outside the tree")
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    proof = []
    while known and len(level) > 1:
        missing = sorted({position ^ 1 for position in known} - known)
        proof += [level[at] for at in missing if at < len(level)]
        known = {position // 2 for position in known}
        paired = [
            hashlib.sha256(b"\x01" + level[i] + level[i + 1]).digest()
            for i in range(0, len(level) - 1, 2)
        ]
        level = paired + level[len(paired) * 2 :]
    return proof
