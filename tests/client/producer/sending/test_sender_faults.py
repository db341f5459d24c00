"""Whatever the network and the brokers do, every record comes to exactly one end."""

from collections import Counter

import hypothesis.strategies as st
from hypothesis import example, given, settings

from headwater.base.errors import ErrorCode, KafkaError
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.producer.record_metadata import RecordMetadata
from tests.support.fakes.cluster import FakeCluster
from tests.support.tiers import rounds

#: Errors that brokers answer while leaders move or replicas are missing: nothing was written.
PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)

_broker = st.integers(0, 1)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 1), st.integers(1, 12)),
        st.tuples(st.just("wait"), st.sampled_from([0.001, 0.006, 0.2, 1.5, 4.0]), st.just(0)),
        st.tuples(st.just("answer"), _broker, st.integers(1, 3)),
        st.tuples(st.just("refuse"), _broker, st.integers(0, len(PASSING) - 1)),
        st.tuples(st.just("cut"), _broker, st.integers(0, 3)),
        st.tuples(st.just("stray"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("move"), _broker, _broker),
        st.tuples(st.just("limit"), _broker, st.sampled_from([1, 2, 1000])),
    ),
    max_size=60,
)


class Played:
    """Carries out a story, and remembers what was sent and what was told about it."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.sent: list[list[tuple[bytes, DeliveryFuture]]] = [[], []]
        self.told: Counter[bytes] = Counter()
        self.is_acknowledged = cluster.is_acknowledged

    def play(self, story: list[tuple[str, float, int]]) -> None:
        cluster = self.cluster
        cluster.step()
        for kind, first, second in story:
            number = int(first)
            if kind == "send":
                for _ in range(second):
                    self._send(number)
            elif kind == "wait":
                cluster.advance(first)
            elif kind == "answer":
                for _ in range(min(second, len(cluster.wire[number]))):
                    cluster.answer(number)
            elif kind == "refuse" and cluster.wire[number]:
                cluster.answer(number, PASSING[second])
            elif kind == "cut":
                cluster.cut(number, second)
            elif kind == "stray" and number < len(cluster.strays):
                cluster.deliver_stray(number)
            elif kind == "move":
                cluster.leaders[number] = second
            elif kind == "limit":
                cluster.logs[number].record_count_max = second
            cluster.step()
        cluster.settle()

    def _send(self, partition: int) -> None:
        cluster = self.cluster
        value = b"%d-%d" % (partition, len(self.sent[partition]))

        def tell(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            assert (metadata is None) != (error is None)
            self.told[value] += 1

        self.sent[partition].append((value, cluster.send(value, partition, tell)))

    def check_ends(self) -> None:
        """Every record has come to an end, once, and was written where it is said to be."""
        for log, sent in zip(self.cluster.logs, self.sent, strict=True):
            for value, future in sent:
                assert future.done()
                assert self.told[value] == 1
                if future.exception() is None and self.is_acknowledged:
                    # A duplicate's offset may be forgotten, but it is there.
                    offset = future.result().offset
                    assert log.values[offset] == value if offset >= 0 else value in log.values
        accumulator = self.cluster.accumulator
        assert accumulator.available_bytes == accumulator.buffer_bytes
        assert self.cluster.sender.in_flight_count == 0

    def check_order(self) -> None:
        """No record is written twice, and none before one that was sent earlier."""
        for log, sent in zip(self.cluster.logs, self.sent, strict=True):
            places = {value: place for place, (value, _) in enumerate(sent)}
            written = [places[value] for value in log.values]
            assert written == sorted(set(written))


@settings(max_examples=rounds(150, 2000), deadline=None)
@given(actions)
@example(
    # A leader that does not know the producer takes any number from it. So what comes behind the
    # first batch must not be on its way while that may still be refused.
    [("send", 0, 12)] * 3 + [("wait", 0.006, 0), ("refuse", 0, 1), ("answer", 0, 1)]
)
@example(
    # A batch that was written, whose answer was lost, is too large when it comes again: parts of it
    # would be written a second time.
    [("send", 1, 2), ("wait", 0.006, 0), ("cut", 1, 1), ("limit", 1, 1)]
)
def test_idempotence_keeps_each_record_once_and_in_order(
    story: list[tuple[str, float, int]],
) -> None:
    played = Played(FakeCluster())
    played.play(story)
    played.check_ends()
    played.check_order()
    assert played.cluster.fatal_errors == []


@settings(max_examples=rounds(80, 1000), deadline=None)
@given(actions, st.integers(1, 5), st.integers(0, 3))
def test_without_idempotence_each_record_still_ends_once(
    story: list[tuple[str, float, int]], in_flight_max: int, retries: int
) -> None:
    played = Played(FakeCluster(is_idempotent=False, in_flight_max=in_flight_max, retries=retries))
    played.play(story)
    played.check_ends()


@settings(max_examples=rounds(80, 1000), deadline=None)
@given(actions)
def test_one_request_in_flight_keeps_the_order_without_idempotence(
    story: list[tuple[str, float, int]],
) -> None:
    # Duplicates are possible here, and strays would bring them late: leave those out.
    calm = [action for action in story if action[0] != "stray"]
    played = Played(FakeCluster(is_idempotent=False, in_flight_max=1))
    played.play(calm)
    played.check_ends()
    for log, sent in zip(played.cluster.logs, played.sent, strict=True):
        places = {value: place for place, (value, _) in enumerate(sent)}
        firsts = list(dict.fromkeys(places[value] for value in log.values))
        assert firsts == sorted(firsts)


@settings(max_examples=rounds(40, 400), deadline=None)
@given(actions)
def test_nobody_is_asked_with_acks_0(story: list[tuple[str, float, int]]) -> None:
    played = Played(FakeCluster(is_idempotent=False, acks=0))
    played.play(story)
    played.check_ends()
