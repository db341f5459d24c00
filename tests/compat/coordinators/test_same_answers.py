"""The coordinators of Headwater and of Apache Kafka, asked the same, say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headwater.testing.broker_process import BrokerProcess
from tests.support.brokers.broker_peers import plant_secret, prove_raw
from tests.support.kafka.node import small_node
from tests.support.other_clients.groups.raw import wait_for_coordinators
from tests.support.other_clients.questions.groups import (
    GroupConversation,
    a_group_of_the_newer_kind,
    a_stable_group,
    committed_offsets,
    missing_groups,
)
from tests.support.other_clients.questions.questions import common_versions
from tests.support.other_clients.questions.transactions import (
    open_transactions,
    producers,
    refusals,
)
from tests.support.other_clients.raw import RawConnection
from tests.support.other_clients.transactions.raw import new_producer

pytestmark = [pytest.mark.full, pytest.mark.kafka]

# The one that the node of Apache Kafka has.
BROKER_ID = 1
#: Fields that hold a time.
TIMES = ("transaction_start_time_ms", "last_timestamp")


@pytest.fixture(scope="module")
def connections(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RawConnection, RawConnection]]:
    process = BrokerProcess(tmp_path_factory.mktemp("headwater"), broker_id=BROKER_ID)
    # Without ACLs Apache Kafka answers anybody what only brokers ask; ours asks for a proof first.
    secret = plant_secret(process.data_dir)
    node = small_node(tmp_path_factory.mktemp("kafka"))
    with (
        process,
        node,
        RawConnection(process.bootstrap) as ours,
        RawConnection(node.bootstrap) as theirs,
    ):
        prove_raw(ours, secret, BROKER_ID)
        for each in (process, node):
            wait_for_coordinators(each.bootstrap)
        for connection in (ours, theirs):
            # Whatever partition of its topic an id is in, the coordinator has loaded it then.
            for number in range(8):
                new_producer(connection, f"first-{number}")
        yield ours, theirs


@pytest.mark.parametrize(
    "script",
    [
        committed_offsets,
        # Before the next one, after which Kafka lists groups that nobody could join.
        a_stable_group,
        missing_groups,
        a_group_of_the_newer_kind,
        producers,
        refusals,
        open_transactions,
    ],
    ids=lambda script: script.__name__,
)
def test_same_answers(
    script: Callable[[GroupConversation], None], connections: tuple[RawConnection, RawConnection]
) -> None:
    versions = common_versions(*connections)
    ours, theirs = (GroupConversation(connection, versions) for connection in connections)
    script(ours)
    script(theirs)
    assert ours.answers.keys() == theirs.answers.keys() and len(ours.answers) > 20
    different = {
        label: (ours.answers[label], answer)
        for label, answer in theirs.answers.items()
        if _timeless(ours.answers[label]) != _timeless(answer)
    }
    assert different == {}


def _timeless(value: object) -> object:
    """Without moments, of which only whether there is one counts, and with groups in order."""
    if isinstance(value, dict):
        return {key: each >= 0 if key in TIMES else _timeless(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_timeless, value), key=_group_of)
    return value


def _group_of(item: object) -> str:
    return str(item.get("group_id", "")) if isinstance(item, dict) else ""
