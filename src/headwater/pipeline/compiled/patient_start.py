"""Starting streaming queries one after the other, and again where the machine was too slow.

Every Python source of a query is a process of its own on the driver, to which Spark gives ten
seconds to come up, whatever else the machine does. Queries that start all at once make that
unlikely; so each start waits until the sources of the one before are there. A query that failed
for that reason alone has done nothing yet, and is started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery

ATTEMPTS: Final = 4
_PAUSE_S: Final = 0.05
_INITIALIZING: Final = "Initializing"
_TOO_SLOW: Final = "failed to connect back"


def start_patiently(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The started query, whose sources are there, or which has failed for a reason of its own."""
    query = _initialized(start())
    for _ in range(ATTEMPTS - 1):
        if not _was_too_slow(query):
            break
        query = _initialized(start())
    return query


def _initialized(query: StreamingQuery) -> StreamingQuery:
    # Bounded by Spark itself: a source that does not come up fails the query.
    while query.isActive and query.status["message"].startswith(_INITIALIZING):
        time.sleep(_PAUSE_S)
    return query


def _was_too_slow(query: StreamingQuery) -> bool:
    if query.isActive:
        return False
    error = query.exception()
    return error is not None and _TOO_SLOW in str(error)
