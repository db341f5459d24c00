"""The administrator's policy for new topics: found by name, set up once, or refused at start."""

import sys
from collections.abc import Iterator, Mapping
from types import ModuleType

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.broker.topics.policy import PolicyViolation, load_topic_policy


class NoLargeTopics:
    def __init__(self) -> None:
        self.limit = 0

    def configure(self, settings: Mapping[str, str]) -> None:
        self.limit = int(settings["limit"])

    def validate(
        self, name: str, partitions: int, factor: int, assignments: object, configs: object
    ) -> None:
        if partitions > self.limit:
            raise PolicyViolation(f"{name} has more than {self.limit} partitions.")


class Broken:
    def __init__(self) -> None:
        raise OSError("the rule book is missing")


class WithoutValidate:
    pass


@pytest.fixture
def module() -> Iterator[str]:
    module = ModuleType("rules_of_this_test")
    vars(module).update(
        NoLargeTopics=NoLargeTopics, Broken=Broken, WithoutValidate=WithoutValidate, Number=7
    )
    sys.modules[module.__name__] = module
    yield module.__name__
    del sys.modules[module.__name__]


@pytest.mark.parametrize("separator", [":", "."])
def test_a_policy_is_found_configured_and_asked(module: str, separator: str) -> None:
    policy = load_topic_policy(f"{module}{separator}NoLargeTopics", {"limit": "10"})
    assert policy is not None
    policy.validate("small", 10, 1, None, {})
    with pytest.raises(KafkaError, match="large has more than 10 partitions") as refusal:
        policy.validate("large", 11, 1, None, {})
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("unset", [None, ""])
def test_there_need_not_be_a_policy(unset: str | None) -> None:
    assert load_topic_policy(unset) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_module_at_all:Rules", "cannot be imported"),
        ("Rules", "should be package.module:Class"),
        (":Rules", "should be package.module:Class"),
        ("rules_of_this_test:", "should be package.module:Class"),
        ("rules_of_this_test:Nothing", "has no class Nothing"),
        ("rules_of_this_test:Number", "has no class Number"),
        ("rules_of_this_test:Broken", "the rule book is missing"),
        ("rules_of_this_test:WithoutValidate", "has no method validate"),
    ],
)
def test_what_cannot_be_a_policy_is_told_in_a_sentence(module: str, name: str, reason: str) -> None:
    with pytest.raises(SettingError, match=reason) as error:
        load_topic_policy(name)
    assert "create.topic.policy.class.name" in str(error.value)
