"""Every broker parameter of the notes' table exists, has their default, and does something.

Each either says in its row why it has no effect, or a test is named here that changes it and sees
one.
"""

import ast
from pathlib import Path

import pytest

from headwater.broker.settings.tables import BROKER_SETTINGS

ROOT = Path(__file__).parents[3]

# As the notes give them; "null" stands for no value.
DEFAULTS = {
    "auto.create.topics.enable": "true",
    "auto.leader.rebalance.enable": "true",
    "background.threads": "10",
    "compression.type": "producer",
    "delete.topic.enable": "true",
    "leader.imbalance.check.interval.seconds": "300",
    "leader.imbalance.per.broker.percentage": "10",
    "log.flush.interval.messages": "9223372036854775807",
    "log.flush.interval.ms": "null",
    "log.flush.scheduler.interval.ms": "9223372036854775807",
    "log.retention.bytes": "-1",
    "log.retention.hours": "168",
    "log.retention.minutes": "null",
    "log.retention.ms": "null",
    "log.roll.hours": "168",
    "log.roll.ms": "null",
    "log.segment.bytes": "1073741824",
    "log.segment.delete.delay.ms": "60000",
    "min.insync.replicas": "1",
    "num.io.threads": "8",
    "num.network.threads": "3",
    "log.cleaner.enable": "true",
    "log.cleaner.min.cleanable.ratio": "0.5",
    "log.cleaner.threads": "1",
    "log.cleanup.policy": "delete",
    "log.index.interval.bytes": "4096",
    "log.index.size.max.bytes": "10485760",
    "log.message.format.version": "2.0-IV1",
    "log.message.timestamp.type": "CreateTime",
    "log.retention.check.interval.ms": "300000",
    "num.partitions": "1",
    "reserved.broker.max.id": "1000",
    "create.topic.policy.class.name": "null",
    "broker.id.generation.enable": "true",
    "broker.rack": "null",
}

_HERE = "tests/broker/settings"
_LOGS = f"{_HERE}/test_log_effects.py"
_OTHERS = f"{_HERE}/test_effects.py"
_HANDLERS = "tests/broker/handlers"
_REBALANCING = "tests/broker/peers/test_leader_rebalancing.py"

#: A file and the function in it that changes the setting and sees what follows.
EFFECT_TESTS = {
    "auto.create.topics.enable": (
        f"{_HANDLERS}/test_metadata.py",
        "test_a_missing_topic_is_not_created_against_the_will_of_either_side",
    ),
    "auto.leader.rebalance.enable": (_REBALANCING, "test_it_can_be_turned_off"),
    "background.threads": (_OTHERS, "test_threads"),
    "broker.id.generation.enable": (
        f"{_HERE}/test_static_settings.py",
        "test_what_is_wrong_is_told_in_a_sentence",
    ),
    "broker.rack": (f"{_HANDLERS}/test_describe_cluster.py", "test_the_cluster_is_described"),
    "compression.type": (_LOGS, "test_compression"),
    "create.topic.policy.class.name": (
        f"{_HANDLERS}/test_create_topics.py",
        "test_a_policy_may_refuse_topics",
    ),
    "delete.topic.enable": (_OTHERS, "test_delete_topic_enable"),
    "leader.imbalance.check.interval.seconds": (
        _REBALANCING,
        "test_how_often_and_from_which_share_on_can_be_set",
    ),
    "leader.imbalance.per.broker.percentage": (
        _REBALANCING,
        "test_how_often_and_from_which_share_on_can_be_set",
    ),
    "log.cleaner.enable": (_LOGS, "test_compaction_can_be_turned_off"),
    "log.cleaner.min.cleanable.ratio": (_LOGS, "test_a_log_that_is_clean_enough_is_left_alone"),
    "log.cleaner.threads": (
        "tests/storage/compaction/test_cleaner.py",
        "test_several_logs_at_a_time",
    ),
    "log.cleanup.policy": (_LOGS, "test_compacted_topics_want_keys"),
    "log.flush.interval.messages": (_LOGS, "test_flushing_by_count"),
    "log.flush.interval.ms": (_LOGS, "test_flushing_by_time"),
    "log.flush.scheduler.interval.ms": (_LOGS, "test_flushing_by_time"),
    "log.index.interval.bytes": (_LOGS, "test_indexes"),
    "log.index.size.max.bytes": (_LOGS, "test_indexes"),
    "log.message.timestamp.type": (_LOGS, "test_timestamps"),
    "log.retention.bytes": (_LOGS, "test_large_logs_are_cut"),
    "log.retention.check.interval.ms": (
        "tests/storage/directories/test_maintenance.py",
        "test_each_period_can_be_set",
    ),
    "log.retention.hours": (_LOGS, "test_old_records_go"),
    "log.retention.minutes": (_LOGS, "test_old_records_go"),
    "log.retention.ms": (_LOGS, "test_old_records_go"),
    "log.roll.hours": (_LOGS, "test_segments_roll_by_time"),
    "log.roll.ms": (_LOGS, "test_segments_roll_by_time"),
    "log.segment.bytes": (_LOGS, "test_segments_roll_by_size"),
    "log.segment.delete.delay.ms": (_LOGS, "test_files_stay_for_a_while"),
    "min.insync.replicas": (_OTHERS, "test_min_insync_replicas_of_the_broker_and_of_a_topic"),
    "num.io.threads": (_OTHERS, "test_threads"),
    "num.partitions": (_OTHERS, "test_num_partitions"),
    "reserved.broker.max.id": (
        _OTHERS,
        "test_broker_ids_are_made_up_above_the_reserved_ones_and_kept",
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_is_that_of_the_notes(name: str) -> None:
    row = BROKER_SETTINGS[name]
    assert (row.render(row.default) or "null") == DEFAULTS[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_it_has_an_effect_or_a_reason(name: str) -> None:
    has_reason = bool(BROKER_SETTINGS[name].without_effect)
    assert has_reason != (name in EFFECT_TESTS)
    if not has_reason:
        path, function = EFFECT_TESTS[name]
        tree = ast.parse((ROOT / path).read_text())
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in functions


def test_no_effect_is_claimed_for_others() -> None:
    assert EFFECT_TESTS.keys() <= DEFAULTS.keys()
