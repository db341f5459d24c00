"""What tests and benchmarks run Headwater with, or against.

    from headwater.testing import broker

    with broker() as running:
        running.create_topic("orders", partitions=3)
        client = AnyKafkaClient(running.bootstrap)

`plugin` offers the same to pytest as fixtures. Nothing of the broker is imported before one is
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.testing.running_broker import RunningBroker

__all__ = ["broker"]


def broker(
    data_dir: str | Path | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    port: int = 0,
) -> RunningBroker:
    """Start a broker in this process; use it with `with`, or call `close` at the end.

    It listens on 127.0.0.1, on a free port unless one is given, and does not wait for disks.
    Without `data_dir` its data lies in a temporary directory that is removed at the end.
    `settings` are a broker's, by Kafka's names: `{"num.partitions": "3"}`.
    """
    from headwater.testing.running_broker import RunningBroker

    return RunningBroker(data_dir, settings=settings, port=port)
