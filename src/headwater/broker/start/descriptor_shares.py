"""How a broker divides the descriptors that its process may open.

Logs and connections want as many as they can get, and would take each other's: a broker that has
none left cannot open a segment because of its clients. So each gets a share, and the rest is kept
for what must never wait: the metadata store, connections to other brokers, metrics, new files.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: What is kept for all else, of a limit that is not too low for it.
_RESERVE: Final = 160
_HANDLES_MIN: Final = 16
_CONNECTIONS_MIN: Final = 16
#: A connection that is answered from files has two.
_PER_CONNECTION: Final = 2


class DescriptorShares(NamedTuple):
    handles_max: int
    connections_max: int


def share_descriptors(limit: int, handles_wanted: int) -> DescriptorShares:
    """Logs get what they want up to a third; connections what is left."""
    left = limit - min(_RESERVE, limit // 3)
    handles = max(_HANDLES_MIN, min(handles_wanted, left // 3))
    connections = max(_CONNECTIONS_MIN, (left - handles) // _PER_CONNECTION)
    return DescriptorShares(handles, connections)
