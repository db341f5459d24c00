"""Steps that clients wrote are told of the place that they are about, though spans are the same."""

from dataclasses import replace

from headwater.delivery.trace.story import tell
from tests.support.traces.made_up import FAILED, SPAN_ID, failures, step, traceparent


def test_what_a_worker_writes_of_the_copy_that_it_sends_is_not_told_of_the_record() -> None:
    """Copies have the header of the record, and so have the requests with them its span."""
    stations = failures((1, 2, 7, "retry.billing-0@1"), (2, 8, 18, "retry.billing-0@3"))
    stations = [
        replace(each, record=each.record._replace(headers=(*each.record.headers, traceparent())))
        for each in stations
    ]
    retry = "retry.billing"
    steps = [
        step("created", 0),
        step("sent", 0.1),
        step("retried", 0.2, attempt=2),
        step("acknowledged", 0.3, FAILED),
        step("fetched", 1.9, FAILED, host="worker-1", group="billing"),
        step("created", 2, topic=retry, span_id="1" * 16, parent_span_id=SPAN_ID),
        step("sent", 2.1, topic=retry),
        step("acknowledged", 2.2, "retry.billing-0@0", span_id="1" * 16, created=2),
        step("created", 8, topic=retry, span_id="2" * 16, parent_span_id=SPAN_ID),
        step("sent", 8.1, topic=retry),
        step("acknowledged", 8.2, "retry.billing-0@2", span_id="2" * 16, created=8),
        # Of one that still waits nothing is known but this.
        step("created", 19, topic=retry + ".later", span_id="3" * 16, parent_span_id=SPAN_ID),
        step("sent", 19.1, topic=retry + ".later"),
    ]
    timeline = tell(stations, steps)
    assert [(each.what.value, each.station) for each in timeline.events] == [
        *(("created", 0), ("sent", 0), ("retried", 0), ("acknowledged", 0), ("fetched", 0)),
        *(("sent_on", 0), ("created", 1), ("sent", 1), ("acknowledged", 1), ("delivered", 1)),
        *(("sent_on", 1), ("created", 2), ("sent", 2), ("acknowledged", 2), ("delivered", 2)),
    ]
    assert timeline.skews == []
