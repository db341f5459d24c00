import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.connection.retry import Deadline, RetryPolicy, may_retry
from headwater.client.errors import BrokerUnreachableError


@given(attempt=st.integers(1, 10_000), seed=st.integers(0, 100))
def test_pauses_grow_to_a_bound_and_are_spread(attempt: int, seed: int) -> None:
    policy = RetryPolicy(backoff_ms=100, backoff_max_ms=1000, multiplier=2.0, jitter=0.2)
    pause_ms = policy.pause_s(attempt, random.Random(seed)) * 1000
    middle_ms = min(100 * 2 ** min(attempt - 1, 20), 1000)
    assert middle_ms * 0.799 <= pause_ms <= middle_ms * 1.201


def test_a_deadline() -> None:
    deadline = Deadline.after(5.0, now_s=100.0)
    assert (deadline.left_s(102.0), deadline.left_s(200.0)) == (3.0, 0.0)
    assert not deadline.is_over(104.9)
    assert deadline.is_over(105.0)


@pytest.mark.parametrize(
    ("error", "final_for_names", "retriable"),
    [
        (BrokerUnreachableError(), True, True),
        (KafkaError(ErrorCode.NOT_CONTROLLER), True, True),
        (KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS), True, False),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), True, False),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), False, True),
        (KafkaError(ErrorCode.UNKNOWN_TOPIC_ID), True, False),
        (ValueError(), True, False),
    ],
)
def test_what_may_be_tried_again(error: Exception, final_for_names: bool, retriable: bool) -> None:
    assert may_retry(error, unknown_topic_is_final=final_for_names) is retriable
