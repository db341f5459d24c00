"""Apache Kafka for tests: whether it can run here, and a small node of it."""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.testing.apache_kafka import (
    ApacheKafkaUnavailableError,
    Installation,
    KafkaNode,
    find_clients,
    find_installation,
    resolve,
    resolve_clients,
)
from tests.support.requirements import skip_or_fail

SMALL_NODE_PROPERTIES = {
    # A broker that comes back after a crash must wait until its former self counts as gone, nine
    # seconds by default.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "150",
    # A group would keep each assignment for a second by default.
    "group.consumer.assignment.interval.ms": "0",
    # By default there are 50 each, all to be opened at a start.
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}


def require_apache_kafka() -> Installation:
    """The pinned Apache Kafka; the running test is skipped, or failed, where there is none."""
    return _required("Apache Kafka", find_installation, resolve)


def require_java_client() -> Installation:
    """The pinned Java client; the running test is skipped, or failed, where there is none."""
    return _required("Apache Kafka's Java client", find_clients, resolve_clients)


def _required(
    what: str, find: Callable[[], Installation | None], fetch: Callable[[], Installation]
) -> Installation:
    """A test run fetches it only on a machine where nothing may be skipped.

    Elsewhere the one who runs the tests decides about a download.
    """
    try:
        must_run = os.environ.get("HEADWATER_REQUIRE_ALL") == "1"
        kafka = fetch() if must_run else find()
    except ApacheKafkaUnavailableError as unavailable:
        skip_or_fail(str(unavailable))
    if kafka is None:
        skip_or_fail(
            f"this test needs {what}: "
            "fetch it once with `python -m headwater.testing.apache_kafka resolve`"
        )
    return kafka


def require_confluent_kafka() -> Any:
    """The module `confluent_kafka`; the running test is skipped, or failed, where there is none."""
    try:
        importlib.import_module("confluent_kafka.admin")
        return importlib.import_module("confluent_kafka")
    except ImportError:
        skip_or_fail("this test needs the package confluent-kafka, which is not installed")


def small_node(
    directory: Path, properties: dict[str, str] | None = None, *, log_dir_count: int = 1
) -> KafkaNode:
    """A node that is light and quick to restart, in `directory`; not started yet."""
    kafka = require_apache_kafka()
    return KafkaNode(
        directory,
        properties=SMALL_NODE_PROPERTIES | (properties or {}),
        heap="256m",
        jvm_flags=kafka.quick_start_flags,
        log_dir_count=log_dir_count,
        kafka=kafka,
    )
