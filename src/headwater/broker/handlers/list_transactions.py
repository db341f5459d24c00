"""ListTransactions (key 66): the transactional ids that this broker coordinates.

Names of states that do not exist are told apart in the answer.
"""

from __future__ import annotations

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.context import RequestContext
from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.broker.requests.api_handler import ApiHandler
from headwater.broker.requests.fair_turns import in_turns
from headwater.coordinator.txn.transaction_filter import (
    TransactionFilter,
    matcher_of,
    states_of,
)
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


async def handle(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    try:
        return await _list(request, context)
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)


async def _list(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    runtime = context.broker.transactions
    if runtime.is_loading:
        raise KafkaError(
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Not all transactions are known here yet."
        )
    states, unknown = states_of(request.state_filters)
    pattern = request.transactional_id_pattern
    wanted = TransactionFilter(
        states=states,
        producer_ids=frozenset(request.producer_id_filters),
        duration_ms=request.duration_filter,
        id_matches=matcher_of(pattern) if pattern else None,
    )
    now_ms = context.broker.clock.wall_ms()
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    known = [metadata for shard in runtime.shards() for metadata in shard.transactions]
    async for metadata in in_turns(known):
        if wanted.lets_pass(metadata, now_ms):
            response.transaction_states.append(
                TransactionState(
                    transactional_id=metadata.transactional_id,
                    producer_id=metadata.producer.producer_id,
                    transaction_state=metadata.state.label,
                )
            )
    return response


API = ApiHandler(CARDS[ApiKey.LIST_TRANSACTIONS], handle)
