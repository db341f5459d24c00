"""Commits the offsets of a consumer to its group's coordinator, one request at a time, in order.

What is committed while a request is under way waits, and goes out together with the next: of two
offsets for a partition the later one. So a commit never undoes a later one, however often it is
tried again, and any number of commits that were not waited for cost two requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.base.settings import SettingValues
from headwater.client.connection.cluster_connection import Lane
from headwater.client.connection.cluster_metadata import ClusterMetadata
from headwater.client.connection.coordinator_cache import CoordinatorCache
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.connection.retry import RetryPolicy
from headwater.client.consumer.committed.errors import commit_error
from headwater.client.consumer.committed.fetches import Committed, OffsetFetches
from headwater.client.consumer.committed.offset_and_metadata import OffsetAndMetadata
from headwater.client.consumer.committed.requests import (
    NAMES_VERSION_MAX,
    TopicIds,
    commit_outcomes,
    commit_request,
)
from headwater.client.consumer.membership.membership import GroupIdentity
from headwater.client.machines.ask import Ask, CoordinatorOf
from headwater.client.machines.completion import Completion
from headwater.client.settings.consumer_settings import CLASSIC
from headwater.wire.messages.offset_commit import OffsetCommitResponse

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

#: The protocol calls it retriable, but the rebalance ends only when the one who commits polls.
_FINAL: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS})


@dataclass(slots=True, eq=False)
class _Commit:
    offsets: Offsets
    is_retried: bool
    deadline_s: float
    completion: Completion[None] = field(default_factory=Completion)


class OffsetCommits:
    """`identity` says who commits; what it raises fails the commit."""

    def __init__(
        self,
        values: SettingValues,
        *,
        coordinators: CoordinatorCache,
        metadata: ClusterMetadata,
        identity: Callable[[], GroupIdentity],
        policy: RetryPolicy,
        generator: random.Random,
    ) -> None:
        self._group_id = values.text("group.id")
        self._coordinator = CoordinatorOf(CoordinatorKind.GROUP, self._group_id)
        self._coordinators = coordinators
        self._metadata = metadata
        self._identity = identity
        self._policy = policy
        self._generator = generator
        self._request_timeout_s = values.integer("request.timeout.ms") / 1000
        self._api_timeout_s = values.integer("default.api.timeout.ms") / 1000
        # Heartbeats of the consumer protocol tell the coordinator what a member has let go of: a
        # commit must not fall behind them. Those of classic groups may be held up by a join.
        is_classic = values.text("group.protocol") == CLASSIC
        self._lane = Lane.ORDINARY if is_classic else Lane.COORDINATION
        self._fetches = OffsetFetches(
            self._group_id,
            coordinator=self._coordinator,
            coordinators=coordinators,
            metadata=metadata,
            policy=policy,
            generator=generator,
            request_timeout_s=self._request_timeout_s,
            api_timeout_s=self._api_timeout_s,
        )
        #: In the order in which they were made.
        self._waiting: list[_Commit] = []
        self._under_way: Sequence[_Commit] = ()
        self._settling: list[tuple[set[_Commit], Completion[None]]] = []
        self._due_s = 0.0
        self._failure_count = 0
        #: The coordinator did not know a topic's id: it is given names for once.
        self._uses_names = False

    def commit(self, offsets: Offsets, now_s: float, *, is_retried: bool) -> Completion[None]:
        """`is_retried` tries again, until `default.api.timeout.ms` is over, what may pass."""
        commit = _Commit(dict(offsets), is_retried, now_s + self._api_timeout_s)
        if offsets:
            self._waiting.append(commit)
        else:
            commit.completion.succeed(None)
        return commit.completion

    def fetch(self, partitions: Collection[TopicPartition], now_s: float) -> Completion[Committed]:
        """What the group has committed for them; None for what it has not."""
        return self._fetches.fetch(partitions, now_s)

    def settled(self) -> Completion[None]:
        """Done when all commits that were made so far are, one way or the other.

        Who lets go of partitions waits for it: a commit that came after the next owner's would undo
        that.
        """
        completion: Completion[None] = Completion()
        self._settling.append((set(self._under_way) | set(self._waiting), completion))
        self._tell_settled()
        return completion

    def _tell_settled(self) -> None:
        settling, self._settling = self._settling, []
        for commits, completion in settling:
            if all(each.completion.is_done for each in commits):
                completion.succeed(None)
            else:
                self._settling.append((commits, completion))

    # -- the machine -----------------------------------------------------------------------------

    def asks(self, now_s: float) -> Sequence[Ask]:
        asks = [*self._fetches.asks(now_s)]
        if self._waiting and not self._under_way and now_s >= self._due_s:
            asks += self._commit_asks()
        return asks

    def wake_at_s(self, now_s: float) -> float | None:
        fetches_s = self._fetches.wake_at_s()
        if not self._waiting or self._under_way:
            return fetches_s
        return self._due_s if fetches_s is None else min(self._due_s, fetches_s)

    def _commit_asks(self) -> list[Ask]:
        commits, self._waiting = self._waiting, []
        try:
            identity = self._identity()
        except KafkaError as error:
            for commit in commits:
                commit.completion.fail(error)
            self._tell_settled()
            return []
        self._under_way = commits
        offsets = _merged(commits)
        topics = TopicIds.of((name for name, _ in offsets), self._metadata)

        def answered(answer: OffsetCommitResponse, now_s: float) -> None:
            self._answered(commits, identity, commit_outcomes(answer, topics), now_s)

        def failed(error: KafkaError, now_s: float) -> None:
            self._coordinators.forget(self._coordinator)
            self._settle(commits, dict.fromkeys(offsets, error), now_s)

        return [
            Ask(
                commit_request(identity, offsets, topics),
                self._coordinator,
                answered,
                failed,
                timeout_s=self._request_timeout_s,
                version_max=NAMES_VERSION_MAX if self._uses_names else topics.version_max,
                lane=self._lane,
            )
        ]

    # -- outcomes --------------------------------------------------------------------------------

    def _answered(
        self,
        commits: Sequence[_Commit],
        identity: GroupIdentity,
        outcomes: Mapping[TopicPartition, ErrorCode],
        now_s: float,
    ) -> None:
        errors: dict[TopicPartition, KafkaError] = {}
        self._uses_names = ErrorCode.UNKNOWN_TOPIC_ID in outcomes.values()
        for topic_partition, code in outcomes.items():
            self._coordinators.note_error(self._coordinator, code)
            if code is not ErrorCode.NONE:
                errors[topic_partition] = commit_error(code, self._group_id, str(topic_partition))
        is_stale = ErrorCode.STALE_MEMBER_EPOCH in outcomes.values()
        if is_stale and self._has_other_epoch(identity):
            # The member's epoch has grown while the request was under way; it owns what it did.
            self._under_way = ()
            self._waiting = [*commits, *self._waiting]
            return
        self._settle(commits, errors, now_s)

    def _has_other_epoch(self, identity: GroupIdentity) -> bool:
        try:
            return self._identity() != identity
        except KafkaError:
            return False

    def _settle(
        self,
        commits: Sequence[_Commit],
        errors: Mapping[TopicPartition, KafkaError],
        now_s: float,
    ) -> None:
        self._under_way = ()
        again: list[_Commit] = []
        latest = _merged(commits)
        self._failure_count = self._failure_count + 1 if errors else 0
        pause_s = self._policy.pause_s(self._failure_count, self._generator) if errors else 0.0
        for commit in commits:
            mine = [errors[each] for each in commit.offsets if each in errors]
            if not mine:
                commit.completion.succeed(None)
                continue
            error = min(mine, key=_may_pass)
            if commit.is_retried and _may_pass(error) and now_s + pause_s < commit.deadline_s:
                # A later commit of the same request may have been done: it must not be undone.
                commit.offsets = {each: latest[each] for each in commit.offsets}
                again.append(commit)
            else:
                commit.completion.fail(error)
        self._due_s = now_s + (pause_s if again else 0.0)
        self._waiting = [*again, *self._waiting]
        self._tell_settled()


def _may_pass(error: KafkaError) -> bool:
    return error.retriable and error.code not in _FINAL


def _merged(commits: Sequence[_Commit]) -> dict[TopicPartition, OffsetAndMetadata]:
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for commit in commits:
        offsets |= commit.offsets
    return offsets
