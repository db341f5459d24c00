"""Tells what a stage of Spark has counted, as rows beside those of other stages.

Rows are named after what was counted, a batch of a query or a range of offsets, and not after who
counted: a task that is tried again, or a batch that is run again, replaces what it told before.
Counts that cannot be written hold nobody up: a line in the log tells of them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from headwater.base.errors import KafkaError
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.delivery.audit.stage_counts import StageCounts
from headwater.delivery.audit.stage_rows import STAGES_TOPIC, encode_stage_row
from headwater.delivery.audit.stage_topic import ensure_stages_topic
from headwater.pipeline.sink.producer_cache import PRODUCERS

_log: Final = logging.getLogger(__name__)
_TIMEOUT_S: Final = 30.0
#: Rows do not say on which machine they were counted: the next attempt may be on another.
_HOST: Final = "spark"

#: Clusters of which this process knows that they have the topic.
_with_topic: set[str] = set()


class CountedPiece(NamedTuple):
    """What is counted as a whole: of which stage, and which piece of which work."""

    #: `source` or `sink`.
    tier: str
    stage: str
    #: With the number below the name of the piece, the same each time that it is counted.
    work: str
    number: int


def publish_counts(client: Mapping[str, str], piece: CountedPiece, counts: StageCounts) -> None:
    """Write what was counted of a piece, instead of what was written of it before."""
    rows = counts.take(
        {
            "tier": piece.tier,
            "stage": piece.stage,
            "host": _HOST,
            "process": piece.work,
            "sequence": piece.number,
            "time": time.time_ns() // 1_000_000,
        }
    )
    if not rows:
        return
    config = {name: value for name, value in client.items() if name in COMMON_SETTINGS}
    servers = config["bootstrap.servers"]
    timeout_ms = str(int(_TIMEOUT_S * 1000))
    try:
        if servers not in _with_topic:
            ensure_stages_topic({**config, "default.api.timeout.ms": timeout_ms})
            _with_topic.add(servers)
        settings = {**config, "linger.ms": "0", "max.block.ms": timeout_ms}
        with PRODUCERS.borrowed(settings) as producer:
            futures = [
                producer.send(STAGES_TOPIC, value, key=key)
                for key, value in map(encode_stage_row, rows)
            ]
            producer.flush(_TIMEOUT_S)
            for future in futures:
                future.result(_TIMEOUT_S)
    except KafkaError as error:
        _with_topic.discard(servers)
        _log.warning(
            "The audit stage %s lost the counts of %s records (%s, %d): %s",
            piece.stage,
            f"{sum(row['count'] for row in rows):,}",
            piece.work,
            piece.number,
            error,
        )
