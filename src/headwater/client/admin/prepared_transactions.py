"""Admin operations on prepared transactions: end what others have prepared, by name.

A producer that takes part in a two-phase commit leaves its transaction open until somebody else has
decided. Whoever decided ends it here, with what names it: the producer id and epoch that wrote it.
A transaction that is not the one that is named is never touched. Where a new producer has taken the
transactional id over since, and kept the transaction, only that one can end it: so it is taken over
once more. Brokers need version 6 of InitProducerId for this (KIP-939).
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.admin.coordinator_requests import ask_coordinators
from headwater.client.admin.outcomes import Outcomes, raised_or_returned, require_all
from headwater.client.admin.transactions import TransactionOperations
from headwater.client.connection.coordinators import CoordinatorKind
from headwater.client.errors import refusal
from headwater.client.kafka_errors import UnsupportedVersionError
from headwater.client.producer.idempotence.identity import (
    PreparedTransactionState,
    ProducerIdentity,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from headwater.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

#: The state of a transaction that is open, as brokers call it.
ONGOING: Final = "Ongoing"
_TWO_PHASE_VERSION: Final = 6
#: The coordinator knows a newer producer of the id, another transaction, or no such id at all.
_NOT_THIS_ONE: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)


class TakenOver(NamedTuple):
    """What an id's new producer is, and the transaction that it has kept, if there is one."""

    producer: ProducerIdentity
    kept: PreparedTransactionState


class PreparedTransactionOperations(TransactionOperations):
    """See `AdminOperations`."""

    async def open_transactions(
        self, transactional_id_pattern: str
    ) -> dict[str, PreparedTransactionState]:
        """What is open under ids that match as a whole: for each, what names its transaction."""
        listed = await self.list_transactions(
            states=[ONGOING], transactional_id_pattern=transactional_id_pattern
        )
        return await self._open_states([found.transactional_id for found in listed])

    async def end_transactions(
        self,
        decided: Mapping[str, PreparedTransactionState],
        *,
        is_commit: bool,
        raise_errors: bool = True,
    ) -> Outcomes[str, bool]:
        """Commit or abort these transactions; true for those that were open until now.

        One that has been ended before, in whatever way, is left as it is; so is any other
        transaction of the same id.
        """
        tried = await self._end(
            {key: ProducerIdentity(*state) for key, state in decided.items()}, is_commit
        )
        passed_by = [
            key
            for key, outcome in tried.items()
            if isinstance(outcome, KafkaError) and outcome.code in _NOT_THIS_ONE
        ]
        outcomes: Outcomes[str, bool] = {
            key: outcome if isinstance(outcome, KafkaError) else True
            for key, outcome in tried.items()
        } | dict.fromkeys(passed_by, False)
        still_open = await self._open_states(passed_by)
        kept = [key for key in passed_by if still_open.get(key) == decided[key]]
        if kept:
            taken = require_all(await self.take_over_transactions(kept))
            producers = {
                key: found.producer for key, found in taken.items() if found.kept == decided[key]
            }
            for key, outcome in (await self._end(producers, is_commit)).items():
                outcomes[key] = outcome if isinstance(outcome, KafkaError) else True
        return raised_or_returned(outcomes, raise_errors)

    async def take_over_transactions(
        self, transactional_ids: Collection[str], *, raise_errors: bool = True
    ) -> Outcomes[str, TakenOver]:
        """Fence the producers of these ids, and keep the transactions that they have open."""

        async def take_over(broker_id: int, key: str) -> TakenOver | KafkaError:
            version = await self.connection.highest_version(
                ApiKey.INIT_PRODUCER_ID, broker_id, _TWO_PHASE_VERSION
            )
            if version < _TWO_PHASE_VERSION:
                return UnsupportedVersionError(
                    f"Broker {broker_id} does not take part in a two-phase commit: it does not "
                    f"have version {_TWO_PHASE_VERSION} of InitProducerId."
                )
            request = InitProducerIdRequest(
                transactional_id=key,
                transaction_timeout_ms=int(self.connection.request_timeout_s * 1000),
                enable2_pc=True,
                keep_prepared_txn=True,
            )
            response = await self.connection.ask(
                request, InitProducerIdResponse, broker_id, version=version
            )
            if response.error_code:
                return refusal(response.error_code, None, CoordinatorKind.TRANSACTION.subject(key))
            return TakenOver(
                ProducerIdentity(response.producer_id, response.producer_epoch),
                PreparedTransactionState(
                    response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
                ),
            )

        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, TakenOver]:
            return {key: await take_over(broker_id, key) for key in owned}

        outcomes = await ask_coordinators(
            self.connection,
            CoordinatorKind.TRANSACTION,
            transactional_ids,
            ask,
            "Taking over transactions",
        )
        return raised_or_returned(outcomes, raise_errors)

    async def _end(
        self, producers: Mapping[str, ProducerIdentity], is_commit: bool
    ) -> Outcomes[str, None]:
        async def end(broker_id: int, key: str) -> KafkaError | None:
            request = EndTxnRequest(
                transactional_id=key,
                producer_id=producers[key].producer_id,
                producer_epoch=producers[key].epoch,
                committed=is_commit,
            )
            response = await self.connection.ask(request, EndTxnResponse, broker_id)
            if not response.error_code:
                return None
            return refusal(response.error_code, None, CoordinatorKind.TRANSACTION.subject(key))

        async def ask(broker_id: int, owned: list[str]) -> Outcomes[str, None]:
            answers = await asyncio.gather(*(end(broker_id, key) for key in owned))
            return dict(zip(owned, answers, strict=True))

        return await ask_coordinators(
            self.connection, CoordinatorKind.TRANSACTION, producers, ask, "Ending transactions"
        )

    async def _open_states(self, keys: Collection[str]) -> dict[str, PreparedTransactionState]:
        """What names the open transaction of each of these ids that has one."""
        described = await self.describe_transactions(keys)
        states: dict[str, PreparedTransactionState] = {}
        for key, outcome in described.items():
            if isinstance(outcome, KafkaError):
                if outcome.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise outcome
            elif outcome.state == ONGOING:
                states[key] = PreparedTransactionState(outcome.producer_id, outcome.producer_epoch)
        return states
