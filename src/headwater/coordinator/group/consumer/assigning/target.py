"""The target assignment of a consumer group: what each member shall have."""

from __future__ import annotations

import uuid
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.image.image import ClusterImage
from headwater.coordinator.group.consumer.assigning.assignment import Assignment
from headwater.coordinator.group.consumer.assignors.assignor import Assignor, GroupSpec, MemberSpec
from headwater.coordinator.group.consumer.assignors.range import RangeAssignor
from headwater.coordinator.group.consumer.assignors.uniform import UniformAssignor
from headwater.coordinator.group.consumer.group import ConsumerGroup
from headwater.coordinator.live_settings import LiveSettings

_ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())
}


def supported_assignors(settings: LiveSettings) -> tuple[str, ...]:
    """What `group.consumer.assignors` names, the default first; classes of Java are passed over."""
    named = (name for name in settings.texts("group.consumer.assignors") if name in _ASSIGNORS)
    return tuple(named) or (UniformAssignor.name,)


def check_assignor(name: str | None, settings: LiveSettings) -> None:
    if name is None:
        return
    supported = supported_assignors(settings)
    if name not in supported:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"There is no assignor {name} here, but there is {' and '.join(supported)}.",
        )


def compute_targets(
    group: ConsumerGroup, image: ClusterImage, settings: LiveSettings
) -> dict[str, Assignment]:
    """What each member of the group shall have."""
    topic_ids: dict[str, uuid.UUID] = {}
    counts: dict[uuid.UUID, int] = {}
    for name in sorted(group.subscribed_topics()):
        topic = image.topics.get(name)
        if topic is not None:
            topic_ids[name] = topic.topic_id
            counts[topic.topic_id] = len(topic.partitions)
    members = {
        member.member_id: MemberSpec(
            frozenset(topic_ids[name] for name in group.topics_of(member) if name in topic_ids),
            group.target(member.member_id),
            member.instance_id,
        )
        for member in group.members.values()
    }
    assignor = _ASSIGNORS[group.preferred_assignor(supported_assignors(settings))]
    dealt = assignor.assign(GroupSpec(members, counts))
    return {member_id: dealt.get(member_id, {}) for member_id in members}
