"""Headwater and Apache Kafka, asked the same, say the same in every version."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headwater.testing.broker_process import BrokerProcess
from tests.support.kafka.node import small_node
from tests.support.other_clients.questions.directories import cordoned_directories
from tests.support.other_clients.questions.offsets import deleted_records, fetches, offsets
from tests.support.other_clients.questions.questions import Conversation, common_versions
from tests.support.other_clients.questions.security import switched_off
from tests.support.other_clients.questions.settings import (
    altered_settings,
    named_settings,
    topic_settings,
)
from tests.support.other_clients.questions.topics import (
    create_partitions,
    create_topics,
    delete_topics,
    elections,
    metadata,
    the_cluster,
)
from tests.support.other_clients.raw import RawConnection

pytestmark = [pytest.mark.full, pytest.mark.kafka]

# The one that the node of Apache Kafka has.
BROKER_ID = 1


@pytest.fixture(scope="module")
def connections(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RawConnection, RawConnection]]:
    process = BrokerProcess(tmp_path_factory.mktemp("headwater"), broker_id=BROKER_ID)
    node = small_node(tmp_path_factory.mktemp("kafka"))
    with (
        process,
        node,
        RawConnection(process.bootstrap) as ours,
        RawConnection(node.bootstrap) as theirs,
    ):
        yield ours, theirs


@pytest.mark.parametrize(
    "script",
    [
        metadata,
        create_topics,
        delete_topics,
        create_partitions,
        topic_settings,
        altered_settings,
        offsets,
        deleted_records,
        fetches,
        elections,
        the_cluster,
        cordoned_directories,
        # Last: what has settings from here on, Kafka lists for ever.
        named_settings,
        switched_off,
    ],
    ids=lambda script: script.__name__,
)
def test_same_answers(
    script: Callable[[Conversation], None], connections: tuple[RawConnection, RawConnection]
) -> None:
    versions = common_versions(*connections)
    ours, theirs = (Conversation(connection, versions) for connection in connections)
    script(ours)
    script(theirs)
    assert ours.answers.keys() == theirs.answers.keys() and len(ours.answers) > 20
    different = {
        label: (ours.answers[label], answer)
        for label, answer in theirs.answers.items()
        if ours.answers[label] != answer
    }
    assert different == {}
