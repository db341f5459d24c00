"""Recording requests and errors."""

import time

from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import ErrorCode
from headwater.broker.metrics.broker_metrics import BrokerMetrics, LatencyHistogram
from headwater.wire.api_keys import ApiKey


@given(st.lists(st.floats(min_value=0, max_value=1000), max_size=50))
def test_every_request_is_counted_below_its_bound(seconds: list[float]) -> None:
    metrics = BrokerMetrics()
    for elapsed_s in seconds:
        metrics.record_request(ApiKey.FETCH, elapsed_s)
    if not seconds:
        assert list(metrics.latencies()) == []
        return
    ((api_key, latency),) = metrics.latencies()
    assert api_key is ApiKey.FETCH
    assert latency.count == len(seconds)
    assert abs(latency.total_s - sum(seconds)) < 1e-6
    for bound_s, below in latency.cumulative(6, 30):
        # Times are cut to whole microseconds first, so the bound itself may count as below.
        assert sum(each < bound_s for each in seconds) <= below
        assert below <= sum(each <= bound_s + 1e-6 for each in seconds)


def test_cumulative_counts_begin_with_what_is_below_the_first_bound() -> None:
    latency = LatencyHistogram()
    latency.counts[0] = 1
    latency.counts[6] = 2
    latency.counts[8] = 4
    latency.counts[30] = 8
    assert list(latency.cumulative(6, 8)) == [(64e-6, 3), (128e-6, 3), (256e-6, 7)]
    assert latency.count == 15


def test_a_clock_that_steps_back_or_stands_still_harms_nothing() -> None:
    metrics = BrokerMetrics()
    metrics.record_request(ApiKey.PRODUCE, -0.5)
    metrics.record_request(ApiKey.PRODUCE, 0.0)
    ((_, latency),) = metrics.latencies()
    assert latency.count == 2


def test_errors_are_counted_by_api_and_code() -> None:
    metrics = BrokerMetrics()
    for _ in range(2):
        metrics.record_error(ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS)
    metrics.record_error(ApiKey.FETCH, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert metrics.errors == {(0, 19): 2, (1, -1): 1}


def test_recording_costs_next_to_nothing() -> None:
    metrics = BrokerMetrics()
    best_s = 1.0
    for _ in range(10):
        started_s = time.perf_counter()
        for _ in range(1000):
            metrics.record_request(ApiKey.PRODUCE, 0.000_123)
        best_s = min(best_s, (time.perf_counter() - started_s) / 1000)
    assert best_s < 5e-6, "it takes about 0.3 microseconds on an idle machine"
