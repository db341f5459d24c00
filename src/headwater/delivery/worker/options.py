"""What a worker was made with: its own settings, and those of its consumer and producer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from headwater.base.settings import SettingError
from headwater.client.consumer.deserializers import DeserializerLike, Deserializers
from headwater.client.failures.verdicts import AfterLike, after_ms_of
from headwater.client.given_items import given_names
from headwater.client.settings.client_config import given_config
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.settings.trace_settings import TRACE_SETTINGS
from headwater.client.settings.typed import ConsumerSettings
from headwater.delivery.worker.policy import RetryPolicy
from headwater.wire.delayed.retry_topics import retry_topic

#: Gets a record; with `AsyncWorker` it is a coroutine function.
Handler = Callable[[Any], Any]

#: What a worker decides itself.
_TAKEN: Final = ("group.id", "enable.auto.commit", "transactional.id")


class WorkerSettings(ConsumerSettings, total=False):
    """All keywords of a worker: its own, and those of a consumer. Bare numbers are seconds."""

    #: The policy for a retry topic that is created, and with `keep_order`.
    retry: RetryPolicy | None
    concurrency: int
    hopeless: Iterable[type[Exception]]
    in_process_attempts: int
    in_process_backoff: AfterLike
    keep_order: bool
    max_in_flight: int
    count_crashes: bool
    crash_attempts: int
    circuit_failure_ratio: float
    circuit_pause: AfterLike
    commit_interval: AfterLike
    drain_timeout: AfterLike
    create_topics: bool
    retry_partitions: int
    replication_factor: int
    instance: str | None
    key_deserializer: DeserializerLike | None
    value_deserializer: DeserializerLike | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    group: str
    handlers: Mapping[str, Handler]
    consumer_config: Mapping[str, object]
    deserializers: Deserializers
    policy: RetryPolicy
    concurrency: int = 1
    #: Kinds of errors after which nothing is tried again.
    hopeless: tuple[type[Exception], ...] = ()
    #: How often a record is tried here before it is sent on.
    in_process_attempts: int = 1
    in_process_backoff_s: float = 0.1
    keep_order: bool = False
    #: How many records of a partition may be read and not committable.
    max_in_flight: int = 1000
    count_crashes: bool = False
    crash_attempts: int = 3
    circuit_failure_ratio: float = 0.9
    circuit_pause_s: float = 30.0
    commit_interval_s: float = 0.5
    drain_timeout_s: float = 30.0
    create_topics: bool = False
    #: -1 for the broker's default.
    retry_partitions: int = -1
    replication_factor: int = -1
    instance: str | None = None

    def __post_init__(self) -> None:
        if not self.group.strip():
            raise SettingError("A worker's group cannot be empty.")
        if not self.handlers:
            raise SettingError("A worker needs at least one topic, and a handler for it.")
        if retry_topic(self.group) in self.handlers:
            raise SettingError(
                f"A worker reads {retry_topic(self.group)} by itself: handle the topics whose "
                "records come back there."
            )
        for name, lowest in (
            ("concurrency", 1),
            ("in_process_attempts", 1),
            ("max_in_flight", 2),
            ("crash_attempts", 1),
        ):
            if getattr(self, name) < lowest:
                raise SettingError(f"{name} cannot be less than {lowest}.")
        if not 0 < self.circuit_failure_ratio <= 1:
            raise SettingError("circuit_failure_ratio must be more than 0, and 1 at most.")
        if self.count_crashes and not self.is_direct:
            raise SettingError(
                "count_crashes needs concurrency=1 and no keep_order: it writes down one record "
                "after the other before that is handled."
            )

    @property
    def is_direct(self) -> bool:
        """Whether records are handled one after the other, by whoever polls."""
        return self.concurrency == 1 and not self.keep_order

    @property
    def bootstrap_config(self) -> dict[str, object]:
        """The settings that every client has."""
        return {
            name: value for name, value in self.consumer_config.items() if name in COMMON_SETTINGS
        }

    def producer_config(self, unique: str) -> dict[str, object]:
        """Of the producer that sends failures on.

        A worker that died holds up readers of the retry topic until its transaction times out,
        unless another takes over its name; so that is soon.
        """
        trace = {
            name: value for name, value in self.consumer_config.items() if name in TRACE_SETTINGS
        }
        return {
            **self.bootstrap_config,
            **trace,
            "transactional.id": f"{self.group}-worker-{self.instance or unique}",
            "transaction.timeout.ms": 15_000,
            # What keeps it from being written is known before that.
            "request.timeout.ms": 10_000,
            "delivery.timeout.ms": 12_000,
            "max.block.ms": 20_000,
            "compression.type": "lz4",
        }


def make_unique() -> str:
    """A name that no other worker has."""
    return uuid.uuid4().hex


def read_options(
    group: str,
    handlers: Mapping[str, Handler],
    config: Mapping[str, object] | None,
    settings: WorkerSettings,
) -> WorkerOptions:
    """Check all that can be; raises `SettingError`."""
    given = dict(cast("Mapping[str, Any]", settings))
    for name in ("in_process_backoff", "circuit_pause", "commit_interval", "drain_timeout"):
        if name in given:
            given[f"{name}_s"] = after_ms_of(given.pop(name)) / 1000
    deserializers = Deserializers(
        given.pop("key_deserializer", None), given.pop("value_deserializer", None)
    )
    policy = given.pop("retry", None) or RetryPolicy()
    hopeless = given.pop("hopeless", ())
    own_names = {each.name for each in fields(WorkerOptions)}
    own = {name: given.pop(name) for name in list(given) if name in own_names}
    named = {name.replace("_", "."): value for name, value in given.items()}
    client = {**given_config(config), **named}
    for name in _TAKEN:
        if name in client:
            raise SettingError(f"The setting {name} is not for a worker's user to choose.")
    for topic, handler in handlers.items():
        if not callable(handler):
            raise TypeError(f"The handler of {topic} cannot be {handler!r}: it must be a function.")
    return WorkerOptions(
        group=group,
        handlers=dict(handlers),
        consumer_config={
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            **client,
            "group.id": group,
            "enable.auto.commit": False,
        },
        deserializers=deserializers,
        policy=policy,
        hopeless=tuple(hopeless) if isinstance(hopeless, Iterable) else (hopeless,),
        **own,
    )


def handlers_of(topics: Iterable[str], handler: Handler) -> dict[str, Handler]:
    return dict.fromkeys(given_names(topics), handler)
