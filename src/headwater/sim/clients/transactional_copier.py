"""A simulated client that copies partitions exactly once: what it reads and writes is one step.

As a member of a group it reads its partitions, writes what it found into partitions of the same
numbers of another topic, and commits its place in the source, all in one transaction. Some are
aborted on purpose. Of two versions of the protocol it speaks one:

    version 1    partitions and the group are added to a transaction before they are written to
    version 2    they are added by writing to them, and every transaction has an epoch of its own

In version 1, a request that came late could fall into the next transaction. So wherever one stayed
without an answer, a version 1 copier asks for a new epoch before it goes on. One that was fenced
does the same as a new producer, unless it has a successor: then it ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from headwater.base.errors import ErrorCode
from headwater.base.ids import TopicPartition
from headwater.broker.topics.coordinator_topics import CoordinatorKind
from headwater.coordinator.outcome import ProducerIdentity
from headwater.sim.clients.broker_link import BrokerLink
from headwater.sim.clients.committed_reader import Visible
from headwater.sim.clients.coordinator_lookup import find_coordinator
from headwater.sim.clients.group_member import GroupMember, MustRejoin
from headwater.sim.clients.transaction_requests import TransactionRequests
from headwater.sim.histories.group_history import GroupHistory
from headwater.sim.histories.history import History, PropertyViolated
from headwater.sim.histories.transaction_history import Ending, Transaction, TransactionHistory
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NOBODY: Final = ProducerIdentity(-1, -1)
#: The producer is not the one that its coordinator knows.
_FENCED: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
TIMEOUTS_MS: Final = (2_000, 10_000)
_RECORDS_MAX: Final = 8


class Fenced(Exception):
    """Somebody else uses the transactional id, or the coordinator gave the transaction up."""


class Abortable(Exception):
    """The transaction cannot be committed, but the producer may go on."""


class TransactionalCopier:
    def __init__(
        self,
        link: BrokerLink,
        history: History,
        groups: GroupHistory,
        transactions: TransactionHistory,
        member: GroupMember,
        *,
        transactional_id: str,
        target_topic: str,
        is_version_2: bool,
    ) -> None:
        self.transactional_id = transactional_id
        #: Set by whoever starts another with the same transactional id.
        self.has_successor = False
        self.transaction_count = 0
        self._link = link
        self._random = link.random
        self._groups = groups
        self._transactions = transactions
        self._member = member
        self._target_topic = target_topic
        self._is_version_2 = is_version_2
        self._identity = _NOBODY
        self._sequences: defaultdict[TopicPartition, int] = defaultdict(int)
        self._requests = TransactionRequests(link, history, transactional_id, is_version_2)
        self._timeout_ms = self._random.choice(TIMEOUTS_MS)

    async def run(self) -> None:
        """Copy without end, or until a successor has taken over."""
        while not self.has_successor:
            try:
                await find_coordinator(
                    self._link, CoordinatorKind.TRANSACTION, self.transactional_id
                )
                await self._renew_identity()
                while not self.has_successor:
                    await self._copy_as_member()
            except Fenced:
                self._identity = _NOBODY
                await self._link.pause()
        await self._member.leave()

    async def _copy_as_member(self) -> None:
        try:
            await self._member.join()
            await self._member.go_to_committed()
            while True:
                await self._member.heartbeat()
                found = await self._member.reader.fetch()
                if not found:
                    await self._link.pause()
                elif not await self._copy_all(found):
                    await self._member.go_to_committed()
        except MustRejoin:
            await self._link.pause()

    # -- one transaction -------------------------------------------------------------------------

    async def _copy_all(self, records: Sequence[Visible]) -> bool:
        """Copy in as many transactions as chance has it; whether all were committed."""
        while records:
            count = self._random.randint(1, _RECORDS_MAX)
            if not await self._copy(records[:count]):
                return False
            records = records[count:]
        return True

    async def _copy(self, records: Sequence[Visible]) -> bool:
        """Copy in one transaction; whether it was committed."""
        transaction = self._transactions.begin(self._link.name)
        self.transaction_count += 1
        by_target: dict[TopicPartition, list[Visible]] = {}
        for record in records:
            target = TopicPartition(self._target_topic, record.partition.partition)
            by_target.setdefault(target, []).append(record)
        transaction.values = {
            target: [record.value for record in some] for target, some in by_target.items()
        }
        offsets = {record.partition: record.offset + 1 for record in records}
        unanswered_before = self._link.unanswered_count
        must_rejoin: MustRejoin | None = None
        is_commit = self._random.random() > 0.15
        try:
            await self._write(transaction)
            await self._commit_offsets(offsets)
        except Abortable:
            is_commit = False
        except MustRejoin as error:
            is_commit, must_rejoin = False, error
        await self._end(transaction, is_commit=is_commit)
        if is_commit:
            self._groups.commit(self._member.group_id, offsets)
        if not self._is_version_2 and self._link.unanswered_count != unanswered_before:
            await self._renew_identity()
        if must_rejoin is not None:
            raise must_rejoin
        return is_commit

    async def _write(self, transaction: Transaction) -> None:
        if not self._is_version_2:
            codes = await self._requests.add_partitions(self._identity, list(transaction.values))
            self._check(codes, "add partitions")
        for target, values in transaction.values.items():
            cut = self._random.randint(0, len(values) - 1)
            for part in (values[:cut], values[cut:]):
                if part:
                    await self._produce(transaction, target, part)

    async def _produce(
        self, transaction: Transaction, target: TopicPartition, values: Sequence[bytes]
    ) -> None:
        code = await self._requests.produce(
            self._identity, target, transaction.name, values, self._sequences[target]
        )
        self._check([code], "write")
        self._sequences[target] += len(values)

    async def _commit_offsets(self, offsets: dict[TopicPartition, int]) -> None:
        member = self._member
        if not self._is_version_2:
            self._check(
                [await self._requests.add_offsets(self._identity, member.group_id)], "add offsets"
            )
        codes = await self._requests.commit_offsets(
            self._identity,
            member.group_id,
            member.generation,
            member.member_id,
            member.instance_id,
            offsets,
        )
        for code in codes:
            if code not in _FENCED and code is not ErrorCode.TRANSACTION_ABORTABLE:
                member.check_membership(code, "commit in a transaction")
        self._check(codes, "commit offsets")

    async def _end(self, transaction: Transaction, *, is_commit: bool) -> None:
        answer = await self._requests.end(self._identity, is_commit=is_commit)
        if answer.error_code == ErrorCode.INVALID_TXN_STATE:
            raise Fenced  # It took too long, and was aborted.
        self._check([ErrorCode.from_wire(answer.error_code)], "end a transaction")
        transaction.ending = Ending.COMMITTED if is_commit else Ending.ABORTED
        if self._is_version_2:
            self._become(ProducerIdentity(answer.producer_id, answer.producer_epoch))

    def _check(self, codes: Sequence[ErrorCode], step: str) -> None:
        if _FENCED.intersection(codes):
            raise Fenced
        if ErrorCode.TRANSACTION_ABORTABLE in codes:
            raise Abortable
        for code in codes:
            if code is not ErrorCode.NONE:
                raise PropertyViolated(
                    f"a copier can {step}: {self._link.name} got {code.name} as {self._identity}"
                )

    # -- identity --------------------------------------------------------------------------------

    async def _renew_identity(self) -> None:
        """Get a new epoch; what the one before left open is aborted by that."""
        # A producer that knows what it was may ask to go on as that, or come as a new one.
        old = self._random.choice((self._identity, _NOBODY))
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=old.producer_id,
            producer_epoch=old.producer_epoch,
        )
        answer = await self._link.insist(
            request, InitProducerIdResponse, lambda answer: [answer.error_code], version=4
        )
        self._check([ErrorCode.from_wire(answer.error_code)], "get a producer id")
        self._become(ProducerIdentity(answer.producer_id, answer.producer_epoch))

    def _become(self, identity: ProducerIdentity) -> None:
        if identity.producer_id < 0 or identity.producer_epoch < 0:
            raise PropertyViolated(f"a producer gets an id, and not {identity}")
        if identity == self._identity:
            raise PropertyViolated(f"every transaction has an epoch of its own: {identity} is old")
        self._identity = identity
        self._sequences.clear()
