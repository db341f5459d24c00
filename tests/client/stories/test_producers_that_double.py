"""How a producer writes a message twice, or in the wrong order, and what to do about it."""

from collections.abc import Mapping, Sequence

from headwater import Consumer, Producer, TopicPartition
from headwater.client.environment import in_environment
from tests.support.brokers.clusters import Cluster
from tests.support.other_clients.users import create_topic, numbers, read_all, take, values_of
from tests.support.proxies.produce_proxy import Fate, ProduceProxy

_QUICK: dict[str, object] = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10}
_CARELESS: dict[str, object] = {
    "acks": "1",
    "enable.idempotence": False,
    "max.in.flight.requests.per.connection": 5,
}
_RIGHT: dict[str, object] = {
    "acks": "all",
    "enable.idempotence": True,
    "max.in.flight.requests.per.connection": 5,
}


def _written(
    cluster: Cluster, fates: Sequence[Fate], settings: Mapping[str, object]
) -> tuple[list[bytes | None], int]:
    """What lies in a topic after ten requests with one record each, with these fates."""
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    with (
        ProduceProxy(cluster.bootstrap, ()) as proxy,
        in_environment(Producer, proxy.environment)(
            {**_QUICK, **settings},
            bootstrap_servers=proxy.bootstrap,
            batch_size=1,
            linger_ms=0,
        ) as producer,
    ):
        # The first one on its own, so that the ones after it are sent without a pause.
        producer.send(topic, b"0").result(30)
        proxy.fates.extend(fates)
        for value in numbers(1, 10):
            producer.send(topic, value)
        producer.flush(60)
        assert proxy.fates == []
        return values_of(read_all(cluster.bootstrap, topic)), proxy.produce_count


def test_a_lost_answer_doubles_a_message(cluster: Cluster) -> None:
    found, produce_count = _written(cluster, [Fate.PASS, Fate.LOSE_ANSWER], _CARELESS)
    assert produce_count > 10
    assert len(found) > 10
    assert set(found) == set(numbers(0, 10))


def test_with_idempotence_the_broker_recognises_what_it_has(cluster: Cluster) -> None:
    found, produce_count = _written(cluster, [Fate.PASS, Fate.LOSE_ANSWER], _RIGHT)
    assert produce_count > 10
    assert found == numbers(0, 10)


def test_several_requests_in_flight_are_reordered_by_a_retry(cluster: Cluster) -> None:
    found, _ = _written(cluster, [Fate.REFUSE], _CARELESS)
    assert sorted(found, key=lambda value: value or b"") == numbers(0, 10)
    assert found != numbers(0, 10)


def test_with_idempotence_several_in_flight_stay_in_order(cluster: Cluster) -> None:
    found, _ = _written(cluster, [Fate.REFUSE], _RIGHT)
    assert found == numbers(0, 10)


def test_without_idempotence_one_in_flight_keeps_order_but_may_double(cluster: Cluster) -> None:
    slow = {**_CARELESS, "max.in.flight.requests.per.connection": 1}
    found, _ = _written(cluster, [Fate.REFUSE], slow)
    assert found == numbers(0, 10)
    found, _ = _written(cluster, [Fate.LOSE_ANSWER], slow)
    assert found == [b"0", b"1", b"1", *numbers(2, 10)]


# -- a producer that is restarted ----------------------------------------------------------------


def _run_job(cluster: Cluster, topic: str, stop_after: int | None) -> None:
    """Sends its ten orders, and does not remember how far it came when it is run again."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number, value in enumerate(numbers(0, 10)):
            if number == stop_after:
                return
            producer.send(topic, value, b"order-%d" % number).result(30)


def test_a_job_that_starts_over_sends_everything_again(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    _run_job(cluster, topic, stop_after=7)
    _run_job(cluster, topic, stop_after=None)
    # Idempotence is for one producer's retries: a new producer's records are new to the broker.
    assert len(read_all(cluster.bootstrap, topic)) == 17


def test_a_consumer_that_knows_what_it_has_done_does_it_once(cluster: Cluster) -> None:
    topic = create_topic(cluster.bootstrap, cluster.new_name())
    _run_job(cluster, topic, stop_after=7)
    _run_job(cluster, topic, stop_after=None)
    done: dict[bytes, bytes] = {}
    effects: list[bytes] = []
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        for record in take(consumer, 17):
            # The key is the order's own id, whoever sent it and however often.
            if record.key not in done:
                done[record.key] = record.value
                effects.append(record.value)
    assert effects == numbers(0, 10)
