"""Groups that read what is written: two members each, of any client, which go on after errors.

    with TrafficReaders(ConfluentMember, bootstrap, "group", topic) as readers:
        wait_until(lambda: len(readers.seen) > 100, "they read")

A member polls all the time and commits after each poll that brought something. Whatever the client
reports is counted and otherwise ignored: what matters is that the group reads everything in the
end, and that no offset ever shows two different records.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tests.support.other_clients.contract import ClientError
from tests.support.other_clients.groups.contract import GroupMember, Membership
from tests.support.other_clients.groups.java import VerifiableMember

MEMBER_COUNT = 2
JOIN_S = 60.0
#: A client that loses its coordinator may need a while; one that never finds it again is at fault.
ERROR_COUNT_MAX = 2_000


class Seen:
    """The numbers that were read, by partition and offset."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, int], int] = {}
        self.conflicts: list[str] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def note(self, partition: int, offset: int, number: int) -> None:
        known = self.numbers.setdefault((partition, offset), number)
        if known != number:
            self.conflicts.append(
                f"offset {offset} of partition {partition} was {known} and then {number}"
            )


class Readers(Protocol):
    @property
    def seen(self) -> Seen: ...

    def check(self) -> None:
        """Raise what ended a member, if anything did."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class TrafficReaders:
    """Members of a client in Python, a thread each."""

    def __init__(self, client: type[GroupMember], bootstrap: str, group: str, topic: str) -> None:
        self.seen = Seen()
        #: What the members were told went wrong.
        self.errors: list[str] = []
        self._client = client
        self._bootstrap = bootstrap
        self._membership = Membership(group, (topic,), metadata_age_ms=2_000)
        self._failure: BaseException | None = None
        self._is_ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, name=f"reader-{client.name}-{number}")
            for number in range(MEMBER_COUNT)
        ]

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_ending.set()
        for thread in self._threads:
            thread.join(JOIN_S)
        assert not any(thread.is_alive() for thread in self._threads), "a member does not close"

    def _read(self) -> None:
        try:
            member = self._client(self._bootstrap, self._membership)
            try:
                self._poll(member)
            finally:
                member.close()
        except (ClientError, TimeoutError) as error:
            # The one who leaves may find nobody to tell.
            if not self._is_ending.is_set():
                self._failure = error
        except BaseException as error:
            self._failure = error

    def _poll(self, member: GroupMember) -> None:
        is_uncommitted = False
        while not self._is_ending.is_set():
            try:
                for record in member.poll():
                    self.seen.note(record.partition, record.offset, int(record.value or b"-1"))
                    is_uncommitted = True
                if is_uncommitted:
                    member.commit()
                    is_uncommitted = False
            except (ClientError, TimeoutError) as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                assert len(self.errors) < ERROR_COUNT_MAX, self.errors[-1]
                self._is_ending.wait(0.05)


class VerifiableReaders:
    """Apache's VerifiableConsumer, two processes of it; it commits by itself."""

    def __init__(self, bootstrap: str, group: str, topic: str, directory: Path) -> None:
        self._arguments = (bootstrap, group, topic, directory)
        self._members: Sequence[VerifiableMember] = ()
        self._seen = Seen()
        #: How many events of each member are in `_seen`.
        self._noted_counts = [0] * MEMBER_COUNT
        self._stack = ExitStack()

    @property
    def seen(self) -> Seen:
        for index, member in enumerate(self._members):
            fresh = member.events[self._noted_counts[index] :]
            self._noted_counts[index] += len(fresh)
            for event in fresh:
                if event["name"] == "record_data":
                    self._seen.note(event["partition"], event["offset"], int(event["value"]))
        return self._seen

    def check(self) -> None:
        for member in self._members:
            member.check()

    def __enter__(self) -> Self:
        bootstrap, group, topic, directory = self._arguments
        self._members = [
            self._stack.enter_context(
                VerifiableMember(
                    bootstrap,
                    group,
                    topic,
                    "classic",
                    directory / f"verifiable-consumer-{number}.txt",
                    "--verbose",
                )
            )
            for number in range(MEMBER_COUNT)
        ]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()
