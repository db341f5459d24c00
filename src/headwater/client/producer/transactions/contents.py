"""What belongs to a producer's open transaction: partitions, and offsets of consumer groups.

The thread that sends notes partitions; everything else is the loop's. So there are two sets, each
with one writer: what was noted, and what the coordinator knows of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.base.errors import KafkaError
from headwater.base.ids import TopicPartition
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.machines.completion import Completion
from headwater.client.producer.transactions.requests import Offsets


@dataclass(slots=True, eq=False)
class PendingOffsets:
    """Offsets that wait to be committed with the transaction."""

    offsets: Offsets
    group: GroupIdentity
    completion: Completion[None] = field(default_factory=Completion)
    #: Whether the coordinator was asked to add the group: then its answer must be known before the
    #: transaction can end.
    is_group_asked: bool = False


class TransactionContents:
    def __init__(self) -> None:
        #: Whether the coordinator may know of the transaction, so that it has to hear of its end.
        self.is_started = False
        #: In the order in which records came for them.
        self._noted: dict[TopicPartition, None] = {}
        self._added: set[TopicPartition] = set()
        #: What the coordinator was asked to add and has not answered.
        self._asked: list[TopicPartition] = []
        self._groups: set[str] = set()
        self._offsets: list[PendingOffsets] = []

    def clear(self) -> None:
        """The transaction is over."""
        self.is_started = False
        self._noted.clear()
        self._added.clear()
        self._asked = []
        self._groups.clear()
        self._offsets = []

    @property
    def is_pending(self) -> bool:
        """Whether something was asked, or is to be asked, whose answer the end has to wait for."""
        return bool(self._asked or self._offsets)

    # -- partitions ------------------------------------------------------------------------------

    def note(self, topic_partition: TopicPartition) -> None:
        self._noted[topic_partition] = None

    @property
    def has_noted(self) -> bool:
        return bool(self._noted)

    def has_added(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._added

    def partitions_to_add(self, *, only_asked: bool) -> list[TopicPartition]:
        """What the coordinator has to be asked to add, or asked again."""
        if self._asked or only_asked:
            return self._asked
        # Copied first: another thread may be noting one.
        return [each for each in list(self._noted) if each not in self._added]

    def asked(self, partitions: list[TopicPartition]) -> None:
        self._asked = partitions

    def added(self, partitions: list[TopicPartition]) -> None:
        self._asked = []
        self._added.update(partitions)
        self.is_started = True

    # -- offsets ---------------------------------------------------------------------------------

    def add_offsets(self, pending: PendingOffsets) -> None:
        self._offsets.append(pending)

    @property
    def next_offsets(self) -> PendingOffsets | None:
        return self._offsets[0] if self._offsets else None

    def has_group(self, group_id: str) -> bool:
        return group_id in self._groups

    def group_added(self, pending: PendingOffsets) -> None:
        self._groups.add(pending.group.group_id)
        self.is_started = True
        pending.is_group_asked = False
        if pending.completion.is_done:
            self._drop(pending)

    def offsets_done(self, pending: PendingOffsets) -> None:
        self._drop(pending)
        if not pending.completion.is_done:
            pending.completion.succeed(None)

    def give_up(self, error: KafkaError, *, keep_asked: bool) -> None:
        """Fail the offsets that wait; what the coordinator may know of is still to be clarified."""
        for pending in self._offsets:
            if not pending.completion.is_done:
                pending.completion.fail(error)
        self._offsets = [each for each in self._offsets if keep_asked and each.is_group_asked]

    def was_refused(self) -> None:
        """The coordinator has answered no to what it was asked to add."""
        self._asked = []
        self._offsets = [each for each in self._offsets if not each.completion.is_done]

    def _drop(self, pending: PendingOffsets) -> None:
        """They may have been given up while their request was under way."""
        self._offsets = [each for each in self._offsets if each is not pending]
