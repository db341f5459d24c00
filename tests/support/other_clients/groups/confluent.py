"""confluent-kafka as a member of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.other_clients.contract import (
    FETCH_WAIT_MS,
    TIMEOUT_S,
    ClientError,
    error_name,
    require_package,
)
from tests.support.other_clients.groups.contract import (
    AUTO_COMMIT_MS,
    HEARTBEAT_MS,
    POLL_S,
    Event,
    GroupRecord,
    Membership,
    Owned,
    TopicPartition,
)

RECORDS_MAX = 500


class ConfluentMember:
    """See `contract.GroupMember`."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str, membership: Membership) -> None:
        self._confluent = require_package("confluent_kafka", self.name)
        self.events: list[Event] = []
        self._consumer = self._confluent.Consumer(self._config(bootstrap, membership))
        pattern = membership.pattern
        # librdkafka takes what begins with a circumflex for a regular expression.
        topics = list(membership.topics) if pattern is None else [f"^{pattern}"]
        self._consumer.subscribe(
            topics,
            on_assign=lambda _, partitions: self._note("assigned", partitions),
            on_revoke=lambda _, partitions: self._note("revoked", partitions),
            on_lost=lambda _, partitions: self._note("lost", partitions),
        )

    def poll(self) -> list[GroupRecord]:
        found: list[GroupRecord] = []
        with self._named_errors():
            for event in self._consumer.consume(RECORDS_MAX, POLL_S):
                if event.error() is None:
                    found.append(
                        GroupRecord(event.topic(), event.partition(), event.offset(), event.value())
                    )
                # A topic that was just created may not be known everywhere yet.
                elif event.error().code() != self._confluent.KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._named(event.error())
        return found

    def assignment(self) -> Owned:
        return _owned(self._consumer.assignment())

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        with self._named_errors():
            if offsets is None:
                done = self._consumer.commit(asynchronous=False)
            else:
                done = self._consumer.commit(offsets=self._positions(offsets), asynchronous=False)
        for each in done:
            if each.error is not None:
                raise self._named(each.error)

    def commit_later(self) -> None:
        with self._named_errors():
            self._consumer.commit(asynchronous=True)

    def committed(self, partition: TopicPartition) -> int | None:
        wanted = self._confluent.TopicPartition(*partition)
        with self._named_errors():
            [found] = self._consumer.committed([wanted], timeout=TIMEOUT_S)
        if found.error is not None:
            raise self._named(found.error)
        return None if found.offset < 0 else int(found.offset)

    def group_metadata(self) -> Any:
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        self._consumer.close()

    def _config(self, bootstrap: str, membership: Membership) -> dict[str, Any]:
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": membership.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": membership.auto_commit,
            "auto.commit.interval.ms": AUTO_COMMIT_MS,
            "isolation.level": membership.isolation,
            "fetch.wait.max.ms": FETCH_WAIT_MS,
            "topic.metadata.refresh.interval.ms": membership.metadata_age_ms,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        if membership.instance_id is not None:
            config["group.instance.id"] = membership.instance_id
        if membership.protocol == "consumer":
            # Here the broker says how long a session is and who gets what.
            return config | {"group.protocol": "consumer"}
        return config | {
            "session.timeout.ms": membership.session_timeout_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": ",".join(membership.assignors),
        }

    def _positions(self, offsets: Mapping[TopicPartition, int]) -> list[Any]:
        return [self._confluent.TopicPartition(*each, offset) for each, offset in offsets.items()]

    def _note(self, kind: Any, partitions: list[Any]) -> None:
        self.events.append(Event(kind, _owned(partitions)))

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._confluent.KafkaException as error:
            raise self._named(error.args[0]) from error

    def _named(self, error: Any) -> ClientError:
        # Its own error for what it cannot recover from hides the broker's.
        if error.code() == self._confluent.KafkaError._FATAL and "fenced" in error.str():
            return ClientError("FENCED_INSTANCE_ID", error.str())
        return ClientError(error_name(error.code(), error.name()), error.str())


def _owned(partitions: list[Any]) -> Owned:
    return frozenset((each.topic, each.partition) for each in partitions)
