"""The administrator's own rules for new topics (`create.topic.policy.class.name`).

The setting names a Python class, `package.module:Class` or `package.module.Class`. One instance is
made when the broker starts. Its `validate` is called for each topic that somebody wants to create,
and also for those that a client creates by asking for them; it refuses one by raising
`PolicyViolation`, or any exception, with a sentence for the client. A `configure` method, if there
is one, is given the broker's settings first. It runs on the event loop, so it must not wait for
anything. Either the two numbers are given or, for a manual assignment, the brokers by partition.

    class SmallTopicsOnly:
        def validate(self, name, partitions, replication_factor, assignments, configs):
            if partitions > 100:
                raise PolicyViolation("A topic has at most 100 partitions here.")
"""

import importlib
from collections.abc import Mapping

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.cluster.topics.new_topic import CreateTopicPolicy

SETTING = "create.topic.policy.class.name"


class PolicyViolation(KafkaError):
    """A rule of the cluster's administrator forbids it; the message is for the client."""

    code = ErrorCode.POLICY_VIOLATION


def load_topic_policy(
    class_name: str | None, settings: Mapping[str, str] | None = None
) -> CreateTopicPolicy | None:
    """The policy that the setting names; `SettingError` if there is no such class."""
    if not class_name:
        return None
    policy_class = _find_class(class_name)
    try:
        policy = policy_class()
        if hasattr(policy, "configure"):
            policy.configure(dict(settings or {}))
    except Exception as error:
        raise SettingError(f"{SETTING}: {class_name} could not be set up: {error}") from error
    if not callable(getattr(policy, "validate", None)):
        raise SettingError(f"{SETTING}: {class_name} has no method validate.")
    checked: CreateTopicPolicy = policy
    return checked


def _find_class(class_name: str) -> type:
    separator = ":" if ":" in class_name else "."
    module_name, _, name = class_name.rpartition(separator)
    if not module_name or not name:
        raise SettingError(f"{SETTING} should be package.module:Class, but it is {class_name!r}.")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except Exception as error:
        # Whatever the administrator's module does when it is imported, a sentence tells of it.
        raise SettingError(f"{SETTING}: {module_name} cannot be imported: {error}") from error
    if not isinstance(found, type):
        raise SettingError(f"{SETTING}: {module_name} has no class {name}.")
    return found
