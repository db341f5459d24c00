"""What is asked of the controller when topics shall come, and what it answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from headwater.cluster.image.image import ConfigResource

ValidateTopicConfigs = Callable[[Mapping[str, str], Mapping[str, str]], None]
ValidateConfigs = Callable[[ConfigResource, Mapping[str, str], Mapping[str, str]], None]

#: As a number of partitions or replicas: what the cluster's settings say.
USE_DEFAULT: Final = -1


class ManualAssignment(NamedTuple):
    """The brokers that shall hold one partition; the first one is to lead."""

    partition: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created, with numbers or with a manual assignment."""

    name: str
    partition_count: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[ManualAssignment] = ()
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created or, if that was all that was asked, that could be.

    In the second case it has no id, which is to say the id zero.
    """

    name: str
    topic_id: uuid.UUID
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic that shall have `total_count` partitions; assignments are for the added ones."""

    topic: str
    total_count: int
    #: None lets the controller place them.
    assignments: Sequence[Sequence[int]] | None = None


class CreateTopicPolicy(Protocol):
    """An installation's own say on which topics may be created."""

    def validate(
        self,
        name: str,
        partitions: int | None,
        replication_factor: int | None,
        assignments: Mapping[int, Sequence[int]] | None,
        configs: Mapping[str, str],
    ) -> None:
        """Raise an exception, whose text tells the reason, to refuse the topic.

        Either the two numbers are given or the assignments.
        """


def accept_any_configs(configs: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Stands in where nobody checks the configurations of topics."""


def accept_any_other_configs(
    resource: ConfigResource, configs: Mapping[str, str], present: Mapping[str, str]
) -> None:
    """The same for the configurations of anything else."""


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """What the broker's settings say to its controller."""

    default_partition_count: int = 1
    default_replication_factor: int = 1
    topic_deletion_enabled: bool = True
    #: Where neither the topic nor a dynamic setting of the cluster says otherwise, as the next.
    unclean_leader_election_enabled: bool = False
    min_insync_replicas: int = 1
    #: Raises SettingError for a setting that a topic cannot have; the second mapping is what the
    #: topic has now.
    validate_topic_configs: ValidateTopicConfigs = accept_any_configs
    #: Raises KafkaError for settings that anything but a topic cannot be given; the second mapping
    #: is what is set now.
    validate_configs: ValidateConfigs = accept_any_other_configs
    create_topic_policy: CreateTopicPolicy | None = None
