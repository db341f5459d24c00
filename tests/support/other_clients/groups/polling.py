"""A member of a group that is polled all the time, by a thread that it has to itself.

with PolledMember(ConfluentMember, bootstrap, Membership("group", ("orders",))) as member:
    wait_shared([member], [("orders", 0), ("orders", 1)])
    member.call(lambda each: each.commit())
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from headwater.testing.broker_process import wait_until
from tests.support.other_clients.contract import TIMEOUT_S
from tests.support.other_clients.groups.contract import (
    Event,
    GroupMember,
    GroupRecord,
    Membership,
    Owned,
    TopicPartition,
)

Result = TypeVar("Result")

SHARE_TIMEOUT_S = 40.0


class PolledMember:
    """Joins when it is made. Leaves when `close` is called."""

    def __init__(self, client: type[GroupMember], bootstrap: str, membership: Membership) -> None:
        self.membership = membership
        self.records: list[GroupRecord] = []
        self.events: list[Event] = []
        self.owned: Owned = frozenset()
        #: What ended the polling, if anything did.
        self.error: BaseException | None = None
        self._calls: queue.SimpleQueue[tuple[Callable[[GroupMember], Any], Future[Any]]] = (
            queue.SimpleQueue()
        )
        self._is_closing = threading.Event()
        self._thread = threading.Thread(
            target=self._poll, args=(client, bootstrap), name="member", daemon=True
        )
        self._thread.start()

    def call(self, function: Callable[[GroupMember], Result]) -> Result:
        """Do something with the member between two polls."""
        done: Future[Result] = Future()
        self._calls.put((function, done))
        return done.result(TIMEOUT_S)

    def close(self) -> None:
        """Leave the group, and wait until that is done."""
        self._is_closing.set()
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive(), "the member does not close"

    def check(self) -> None:
        """Raise what ended the polling, if it has ended."""
        if self.error is not None:
            raise self.error

    def wait_records(self, count: int) -> list[GroupRecord]:
        """Until so many have come; they must not be more."""

        def have_come() -> bool:
            self.check()
            return len(self.records) >= count

        wait_until(have_come, f"{count} records have come")
        assert len(self.records) == count
        return list(self.records)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _poll(self, client: type[GroupMember], bootstrap: str) -> None:
        try:
            member = client(bootstrap, self.membership)
        except BaseException as error:
            self.error = error
            return
        self.events = member.events
        try:
            while not self._is_closing.is_set():
                records = member.poll()
                self.owned = member.assignment()
                self.records += records
                while not self._calls.empty():
                    self._answer(member)
        except BaseException as error:
            self.error = error
        finally:
            member.close()

    def _answer(self, member: GroupMember) -> None:
        function, done = self._calls.get()
        try:
            done.set_result(function(member))
        except BaseException as error:
            done.set_exception(error)


class Owner(Protocol):
    """What can own partitions: a polled member or one in a process of its own."""

    @property
    def owned(self) -> Owned: ...

    def check(self) -> None: ...


def wait_shared(
    members: Sequence[Owner], partitions: Collection[TopicPartition], least: int = 1
) -> None:
    """Until the members own these partitions and no others, each one once, and each at least so
    many."""

    def shared() -> bool:
        for member in members:
            member.check()
        owned = [member.owned for member in members]
        return (
            sorted(each for some in owned for each in some) == sorted(partitions)
            and min(map(len, owned)) >= least
        )

    try:
        wait_until(shared, "the partitions are shared", SHARE_TIMEOUT_S)
    except TimeoutError as late:
        found = [sorted(member.owned) for member in members]
        raise TimeoutError(f"{late}; the members own {found}") from None


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [(topic, number) for number in range(count)]
