"""The brokers that the conformance tests run against.

Headwater always; Apache Kafka too in the full tier, which shows that the tests ask for what Kafka
does and not for what we think it does. HEADWATER_COMPAT_BOOTSTRAP=host:port runs them against any
other broker instead; what needs a broker with settings of its own is skipped there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from headwater.testing.broker_process import BrokerProcess
from tests.support.kafka.node import small_node

HEADWATER = "headwater"
KAFKA = "kafka"
ADDRESS = "address"


class BrokerUnderTest(NamedTuple):
    kind: str
    bootstrap: str
    #: Where it keeps its logs, if that is known.
    log_dir: Path | None


def broker_kinds() -> list[object]:
    """What to parametrise with."""
    if "HEADWATER_COMPAT_BOOTSTRAP" in os.environ:
        return [ADDRESS]
    return [HEADWATER, pytest.param(KAFKA, marks=[pytest.mark.full, pytest.mark.kafka])]


@contextmanager
def running_broker(
    kind: str, directory: Path, settings: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[BrokerUnderTest]:
    """A broker of that kind, with settings that both know."""
    if kind == ADDRESS:
        if settings:
            pytest.skip("this test needs a broker with settings of its own")
        yield BrokerUnderTest(kind, os.environ["HEADWATER_COMPAT_BOOTSTRAP"], None)
    elif kind == HEADWATER:
        with BrokerProcess(directory, settings=settings, port=port) as process:
            yield BrokerUnderTest(kind, process.bootstrap, process.data_dir)
    else:
        with small_node(directory, dict(settings or {})) as node:
            yield BrokerUnderTest(kind, node.bootstrap, node.log_dirs[0])
