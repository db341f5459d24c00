"""Who waits for the end of a transaction, and what the block makes of errors."""

import asyncio
from collections.abc import Callable

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.kafka_errors import ProducerFencedError
from headwater.client.producer.transactions.coordinator_errors import TransactionPendingError
from headwater.client.producer.transactions.scope import AsyncTransaction, SyncTransaction
from headwater.client.producer.transactions.waiting import Transactions
from headwater.net.peer_errors import PeerUnavailableError
from tests.support.async_tests import run_async
from tests.support.fakes.manager_conversation import Batch, Conversation, transactional


def waiting(conversation: Conversation, max_block_s: float) -> Transactions:
    return Transactions(conversation.manager, lambda: None, max_block_s)


async def started() -> tuple[Conversation, Transactions]:
    """In a transaction with a record in it."""
    conversation = transactional()
    transactions = waiting(conversation, 0.01)
    task = asyncio.create_task(transactions.initialize())
    await asyncio.sleep(0)
    conversation.answer()
    await task
    await transactions.begin()
    conversation.write(batch := Batch())
    conversation.manager.acknowledged(batch, 0)
    return conversation, transactions


@run_async
async def test_a_commit_that_takes_too_long_can_be_waited_for_again() -> None:
    conversation, transactions = await started()
    for _ in range(2):
        with pytest.raises(TransactionPendingError, match=r"commit_transaction\(\) did not finish"):
            await transactions.commit()
    calls: list[Callable[[], object]] = [transactions.abort, transactions.begin]
    for call in calls:
        with pytest.raises(KafkaError, match="outcome is not known yet") as caught:
            await call()  # type: ignore[misc]
        assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    conversation.answer()
    # It is committed, and this is how the user learns of it: nothing is sent again.
    await transactions.commit()
    assert conversation.coordinator.commit_count == 1
    await transactions.begin()


@run_async
async def test_the_error_of_a_deadline_tells_what_is_in_the_way() -> None:
    conversation, transactions = await started()
    commit = asyncio.create_task(transactions.commit())
    await asyncio.sleep(0)
    conversation.next_ask().on_failure(PeerUnavailableError("Nobody is there."), 0.0)
    with pytest.raises(TransactionPendingError, match="Nobody is there"):
        await commit


@run_async
async def test_a_cancelled_wait_leaves_the_outcome_to_be_claimed() -> None:
    conversation, transactions = await started()
    task = asyncio.create_task(transactions.commit())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    conversation.answer(ErrorCode.PRODUCER_FENCED)
    with pytest.raises(ProducerFencedError):
        await transactions.commit()
    # Heard once; from now on it is the producer's state that speaks.
    with pytest.raises(ProducerFencedError, match="not usable any more"):
        await transactions.commit()


@run_async
async def test_closing_aborts_what_is_open() -> None:
    conversation, transactions = await started()
    task = asyncio.create_task(transactions.close())
    await asyncio.sleep(0)
    conversation.answer()
    await task
    assert conversation.coordinator.commit_count == 0
    assert not conversation.manager.operations.has_open_transaction


class RecordingProducer:
    """Calls by name; `errors` says which of them fail."""

    def __init__(self, **errors: KafkaError) -> None:
        self.calls: list[str] = []
        self._errors = errors

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self._errors:
            raise self._errors[name]

    def begin_transaction(self) -> None:
        self._call("begin")

    def commit_transaction(self) -> None:
        self._call("commit")

    def abort_transaction(self) -> None:
        self._call("abort")


class AsyncRecordingProducer:
    def __init__(self, recorder: RecordingProducer) -> None:
        self._recorder = recorder

    async def begin_transaction(self) -> None:
        self._recorder.begin_transaction()

    async def commit_transaction(self) -> None:
        self._recorder.commit_transaction()

    async def abort_transaction(self) -> None:
        self._recorder.abort_transaction()


async def in_both(recorder: RecordingProducer, body_error: Exception | None = None) -> list[str]:
    """The errors that a `with` and an `async with` let out."""
    errors: list[str] = []
    try:
        with SyncTransaction(recorder):
            if body_error is not None:
                raise body_error
    except Exception as error:
        errors.append(str(error))
    try:
        async with AsyncTransaction(AsyncRecordingProducer(recorder)):
            if body_error is not None:
                raise body_error
    except Exception as error:
        errors.append(str(error))
    return errors


@run_async
async def test_a_block_commits() -> None:
    recorder = RecordingProducer()
    assert await in_both(recorder) == []
    assert recorder.calls == ["begin", "commit"] * 2


@run_async
async def test_a_block_that_raises_aborts() -> None:
    recorder = RecordingProducer(abort=ProducerFencedError("fenced"))
    assert await in_both(recorder, ValueError("mine")) == ["mine", "mine"]
    assert recorder.calls == ["begin", "abort"] * 2


@run_async
async def test_a_commit_that_fails_is_aborted() -> None:
    recorder = RecordingProducer(commit=KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large"))
    assert await in_both(recorder) == ["too large", "too large"]
    assert recorder.calls == ["begin", "commit", "abort"] * 2


@run_async
async def test_a_commit_of_which_nobody_knows_is_not_aborted() -> None:
    recorder = RecordingProducer(commit=TransactionPendingError("late"))
    assert await in_both(recorder) == ["late", "late"]
    assert recorder.calls == ["begin", "commit"] * 2
