"""Who is measured at what, and which of them ours is to beat by how much."""

from __future__ import annotations

from typing import NamedTuple

from bench.broker.results import Goal

KAFKA_PYTHON, AIOKAFKA, CONFLUENT = "kafka-python", "aiokafka", "confluent-kafka"
#: No client at all: see `wire_alone`.
WIRE_ALONE = "The wire alone"


class Contender(NamedTuple):
    """A client and one of the ways to use it."""

    job: str
    title: str
    is_ours: bool = False


PRODUCERS = (
    Contender("headwater-produce", "Headwater, Producer", True),
    Contender("headwater-produce-async", "Headwater, AsyncProducer", True),
    Contender("headwater-produce-arrow", "Headwater, Arrow", True),
    Contender("kafka-python-produce", KAFKA_PYTHON),
    Contender("aiokafka-produce", AIOKAFKA),
    Contender("confluent-produce", f"{CONFLUENT}, produce"),
    Contender("confluent-produce-batch", f"{CONFLUENT}, produce_batch"),
    Contender("wire-produce", WIRE_ALONE),
)
CONSUMERS = (
    Contender("headwater-poll", "Headwater, Consumer, poll", True),
    Contender("headwater-iterate", "Headwater, Consumer, iteration", True),
    Contender("headwater-poll-async", "Headwater, AsyncConsumer, poll", True),
    Contender("headwater-iterate-async", "Headwater, AsyncConsumer, iteration", True),
    Contender("headwater-poll-arrow", "Headwater, Arrow", True),
    Contender("headwater-poll-views", "Headwater, Arrow views", True),
    Contender("kafka-python-poll", f"{KAFKA_PYTHON}, poll"),
    Contender("kafka-python-iterate", f"{KAFKA_PYTHON}, iteration"),
    Contender("aiokafka-get-many", f"{AIOKAFKA}, getmany"),
    Contender("aiokafka-iterate", f"{AIOKAFKA}, iteration"),
    Contender("confluent-consume", f"{CONFLUENT}, consume"),
    Contender("confluent-poll", f"{CONFLUENT}, poll"),
    Contender("wire-consume", WIRE_ALONE),
)
TITLES = {each.job: each.title for each in (*PRODUCERS, *CONSUMERS)}


class Match(NamedTuple):
    """One of ours beside a client, which is represented by the quickest of these ways."""

    ours: str
    peer_name: str
    peers: tuple[str, ...]
    #: Without keys; with keys the figures are only told.
    goal: Goal | None = None


_KAFKA_PYTHON_GOAL = Goal(ratio_min=5.0)
_PRODUCE_GOAL, _CONSUME_GOAL = Goal(ratio_min=2.0), Goal(ratio_min=1.2)
_ARROW_GOAL = Goal(ratio_min=2.0)

PRODUCE_MATCHES = (
    *(
        match
        for ours in ("headwater-produce", "headwater-produce-async")
        for match in (
            Match(ours, KAFKA_PYTHON, ("kafka-python-produce",), _KAFKA_PYTHON_GOAL),
            Match(ours, AIOKAFKA, ("aiokafka-produce",), _PRODUCE_GOAL),
            Match(ours, CONFLUENT, ("confluent-produce",)),
        )
    ),
    Match(
        "headwater-produce-arrow",
        CONFLUENT,
        ("confluent-produce", "confluent-produce-batch"),
        _ARROW_GOAL,
    ),
    Match("headwater-produce-arrow", WIRE_ALONE, ("wire-produce",)),
)
CONSUME_MATCHES = (
    *(
        match
        for ours, kafka_python, aiokafka, confluent in (
            ("headwater-poll", "kafka-python-poll", "aiokafka-get-many", "confluent-consume"),
            ("headwater-iterate", "kafka-python-iterate", "aiokafka-iterate", "confluent-poll"),
            ("headwater-poll-async", "kafka-python-poll", "aiokafka-get-many", "confluent-consume"),
            (
                "headwater-iterate-async",
                "kafka-python-iterate",
                "aiokafka-iterate",
                "confluent-poll",
            ),
        )
        for match in (
            Match(ours, KAFKA_PYTHON, (kafka_python,), _KAFKA_PYTHON_GOAL),
            Match(ours, AIOKAFKA, (aiokafka,), _CONSUME_GOAL),
            Match(ours, CONFLUENT, (confluent,)),
        )
    ),
    *(
        match
        for ours in ("headwater-poll-arrow", "headwater-poll-views")
        for match in (
            Match(ours, CONFLUENT, ("confluent-consume", "confluent-poll"), _ARROW_GOAL),
            Match(ours, WIRE_ALONE, ("wire-consume",)),
        )
    ),
)
