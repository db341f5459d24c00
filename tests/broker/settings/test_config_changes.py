"""What a change makes of settings, and which changes are refused, with Kafka's error codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import DynamicScope, Setting, SettingError, SettingKind
from headwater.broker.settings.broker_settings import BrokerSettings
from headwater.broker.settings.config_changes import (
    ConfigOperation,
    Operation,
    check_broker_configs,
    check_topic_configs,
    merge,
)
from headwater.broker.settings.dynamic_settings import check_dynamic
from headwater.broker.settings.tables import TOPIC_SETTINGS
from tests.support.fakes.peers.config_image import FakeConfigImage

SET, DELETE, APPEND, SUBTRACT = Operation
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
POLICY = "cleanup.policy"


def inherited(name: str) -> tuple[str, ...] | None:
    return TOPIC_SETTINGS.defaults().optional_texts(name)


def merged(present: dict[str, str], *operations: ConfigOperation) -> dict[str, str]:
    return merge(present, operations, TOPIC_SETTINGS, inherited)


def test_the_kinds_of_operations() -> None:
    assert merged({}, ConfigOperation("retention.ms", SET, " 5 ")) == {"retention.ms": "5"}
    assert merged({"retention.ms": "5"}, ConfigOperation("retention.ms", DELETE, "x")) == {}
    assert merged({}, ConfigOperation(POLICY, APPEND, "compact")) == {POLICY: "delete,compact"}
    both = {POLICY: "delete,compact"}
    assert merged(both, ConfigOperation(POLICY, APPEND, "compact")) == both
    assert merged(both, ConfigOperation(POLICY, SUBTRACT, "delete")) == {POLICY: "compact"}
    assert merged(both, ConfigOperation(POLICY, SUBTRACT, "compact, delete")) == {POLICY: ""}
    assert merged({POLICY: ""}, ConfigOperation(POLICY, APPEND, "")) == {POLICY: ""}


def test_other_settings_stay() -> None:
    assert merged({"segment.ms": "1"}, ConfigOperation("retention.ms", SET, "2")) == {
        "segment.ms": "1",
        "retention.ms": "2",
    }


def test_a_setting_that_does_not_exist_can_be_removed() -> None:
    assert merged({"of.tomorrow": "1"}, ConfigOperation("of.tomorrow", DELETE)) == {}
    assert merged({}, ConfigOperation("of.tomorrow", DELETE)) == {}


@given(
    present=st.none() | st.lists(st.sampled_from(["compact", "delete"]), unique=True),
    operation=st.sampled_from([APPEND, SUBTRACT]),
    change=st.lists(st.sampled_from(["compact", "delete"]), max_size=3),
)
def test_lists_keep_their_order_and_hold_nothing_twice(
    present: list[str] | None, operation: Operation, change: list[str]
) -> None:
    texts = {} if present is None else {POLICY: ",".join(present)}
    result = merged(texts, ConfigOperation(POLICY, operation, ",".join(change)))[POLICY]
    items = result.split(",") if result else []
    before = ["delete"] if present is None else present
    assert len(set(items)) == len(items)
    if operation is APPEND:
        assert items[: len(before)] == before
        assert set(items) == set(before) | set(change)
    else:
        assert items == [item for item in before if item not in change]


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (ConfigOperation("retention.ms", SET, None), INVALID_REQUEST),
        (ConfigOperation(POLICY, APPEND, None), INVALID_REQUEST),
        (ConfigOperation("retention.ms", 9, "5"), INVALID_REQUEST),
        (ConfigOperation("retention.ms", APPEND, "5"), INVALID_CONFIG),
        (ConfigOperation("retention.ms", SUBTRACT, "5"), INVALID_CONFIG),
        (ConfigOperation("nonsense", SET, "5"), INVALID_CONFIG),
    ],
)
def test_operations_that_are_refused(operation: ConfigOperation, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        merged({}, operation)
    assert raised.value.code is code


def test_a_setting_named_twice_is_refused() -> None:
    operations = [ConfigOperation("retention.ms", SET, value) for value in ("5", "6")]
    with pytest.raises(KafkaError, match="more than once") as raised:
        merged({}, *operations)
    assert raised.value.code is INVALID_REQUEST


# -- topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "configs",
    [
        {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"},
        {"remote.storage.enable": "true"},
        {"compression.gzip.level": "0"},
        {"leader.replication.throttled.replicas": "xx"},
        {"follower.replication.throttled.replicas": "*,0:1"},
        {"min.insync.replicas": "0"},
        {"retention.ms": "abc"},
        {"retention.ms": "-5"},
        {"cleanup.policy": "delete,nonsense"},
        {"nonsense": "1"},
    ],
)
def test_topics_cannot_have(configs: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        check_topic_configs(BrokerSettings.from_texts({}), configs, {})


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"retention.ms": "-1", "cleanup.policy": "compact,delete"},
        {"remote.storage.enable": "false"},
        {"leader.replication.throttled.replicas": "*"},
        {"follower.replication.throttled.replicas": "0:1,1:2"},
        {"local.retention.ms": "99999999"},
    ],
)
def test_topics_can_have(configs: dict[str, str]) -> None:
    check_topic_configs(BrokerSettings.from_texts({}), configs, {})


def test_what_a_topic_inherits_counts() -> None:
    settings = BrokerSettings.from_texts({"log.cleaner.max.compaction.lag.ms": "10"})
    with pytest.raises(SettingError, match="contradict"):
        check_topic_configs(settings, {"min.compaction.lag.ms": "100"}, {})


# -- brokers -------------------------------------------------------------------------------------


def broker_error(configs: dict[str, str], *, is_cluster_wide: bool = False) -> ErrorCode | None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    try:
        check_broker_configs(settings, configs, list(configs), is_cluster_wide=is_cluster_wide)
    except KafkaError as error:
        assert str(error).endswith((".", "?"))
        return error.code
    return None


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("num.io.threads", "16", None),
        ("num.io.threads", "4", None),
        ("num.io.threads", "17", INVALID_REQUEST),
        ("num.io.threads", "3", INVALID_REQUEST),
        ("num.io.threads", "0", INVALID_REQUEST),
        ("num.io.threads", "x", INVALID_REQUEST),
        ("log.cleaner.threads", "0", INVALID_REQUEST),
        ("log.cleaner.threads", "2", None),
        ("log.dirs", "/x", INVALID_REQUEST),
        ("broker.id", "4", INVALID_REQUEST),
        ("auto.create.topics.enable", "false", INVALID_REQUEST),
        ("nonsense", "4", INVALID_CONFIG),
        ("retention.ms", "5000", INVALID_CONFIG),
        ("max.connections.per.ip.overrides", "127.0.0.1:bad", INVALID_REQUEST),
        ("max.connections.per.ip.overrides", "127.0.0.1:5", None),
        ("log.cleaner.max.compaction.lag.ms", "1", None),
        ("compression.gzip.level", "0", INVALID_REQUEST),
        ("leader.replication.throttled.rate", "100", None),
        ("acks.all.flush", "leader", None),
        ("acks.all.flush", "sometimes", INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("is_cluster_wide", [False, True])
def test_brokers(name: str, text: str, code: ErrorCode | None, is_cluster_wide: bool) -> None:
    assert broker_error({name: text}, is_cluster_wide=is_cluster_wide) is code


def test_a_brokers_settings_must_fit_together() -> None:
    lags = {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"}
    assert broker_error(lags) is INVALID_REQUEST


def test_what_is_there_and_does_not_change_is_not_judged_again() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    settings.take_image(FakeConfigImage(brokers={0: {"num.io.threads": "100"}}))
    configs = {"num.io.threads": "100", "of.tomorrow": "1", "max.connections": "5"}
    check_broker_configs(settings, configs, ["max.connections"], is_cluster_wide=False)


def test_a_setting_of_single_brokers_is_refused_for_all() -> None:
    row = Setting("x", SettingKind.INT, 1, "X.", dynamic=DynamicScope.PER_BROKER)
    check_dynamic(row, is_cluster_wide=False)
    with pytest.raises(KafkaError, match="single brokers only") as raised:
        check_dynamic(row, is_cluster_wide=True)
    assert raised.value.code is INVALID_REQUEST


def test_what_is_stored_and_ignored_is_in_the_way_of_no_change() -> None:
    settings = BrokerSettings.from_texts({"broker.id": "0"})
    ignored = {"num.io.threads": "many", "log.dirs": "/", "of.tomorrow": "1"}
    configs = ignored | {"background.threads": "9"}
    check_broker_configs(settings, configs, ["background.threads"], is_cluster_wide=False)
    ignored = {"retention.ms": "soon", "of.tomorrow": "1"}
    check_topic_configs(settings, ignored | {"segment.ms": "9"}, ignored)
    with pytest.raises(SettingError):
        check_topic_configs(settings, {"retention.ms": "later"}, ignored)
