"""The clusters that the client and the command line are tested on.

Headwater always, in this process; Apache Kafka too in the full tier, which shows that the client
speaks to the original and not just to itself.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from headwater.testing.apache_kafka import run_tool
from headwater.testing.running_broker import RunningBroker
from tests.support.kafka.node import require_apache_kafka, small_node

HEADWATER = "headwater"
APACHE = "apache"
KINDS = [HEADWATER, pytest.param(APACHE, marks=[pytest.mark.full, pytest.mark.kafka])]

_numbers = itertools.count(1)


class Cluster(NamedTuple):
    """One broker with two log directories."""

    kind: str
    bootstrap: str
    broker_id: int

    def new_name(self, stem: str = "topic") -> str:
        """A name that no other test uses."""
        return f"{stem}-{next(_numbers)}"

    def run_tool(self, name: str, *arguments: str, input: str | None = None) -> str:
        """What one of Apache Kafka's own tools prints about this cluster."""
        command = ["--bootstrap-server", self.bootstrap, *arguments]
        return run_tool(name, command, input=input, kafka=require_apache_kafka()).stdout


def running_cluster(
    kind: str, directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster of that kind, for a fixture, with settings that both know."""
    # Tests give records times of years ago, which retention would take away under their eyes.
    given = {"log.retention.ms": "-1", **(settings or {})}
    if kind == HEADWATER:
        log_dirs = ",".join(str(directory / name) for name in ("first", "second"))
        own = {"log.dirs": log_dirs, "log.initial.task.delay.ms": "100"}
        with RunningBroker(directory, settings=own | given) as broker:
            yield Cluster(kind, broker.bootstrap, 0)
        return
    with small_node(directory, given, log_dir_count=2) as node:
        yield Cluster(kind, node.bootstrap, 1)
