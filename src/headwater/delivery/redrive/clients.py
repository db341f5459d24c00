"""The clients of a redrive: all with the same settings, and in the same environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.consumer.async_consumer import AsyncConsumer
from headwater.client.environment import ClientEnvironment, ClientT, in_environment
from headwater.client.producer.async_producer import AsyncProducer
from headwater.delivery.redrive.letters.letter_reader import letter_consumer

_ORDERS: Final = {
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}


class Clients:
    """Makes them. What looks at a clock beside them looks at theirs."""

    def __init__(self, config: Mapping[str, object], given: ClientEnvironment | None) -> None:
        self._config = config
        self._given = given
        environment = given or ClientEnvironment()
        self._clock = environment.clock
        self._generator = environment.generator

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def now_s(self) -> float:
        """Monotonic time."""
        return self._clock.monotonic_ms() / 1000

    def make_task_id(self) -> str:
        return f"{self._generator.getrandbits(32):08x}"

    def admin(self) -> AsyncAdmin:
        return self._placed(AsyncAdmin)(self._config)

    def producer(self, settings: Mapping[str, object] | None = None) -> AsyncProducer:
        return self._placed(AsyncProducer)({**self._config, **(settings or {})})

    def letter_consumer(self) -> AsyncConsumer:
        """Reads what is committed."""
        return letter_consumer(self._config, self._placed(AsyncConsumer))

    def order_consumer(self) -> AsyncConsumer:
        """Reads orders, which no transaction holds up."""
        return self._placed(AsyncConsumer)({**self._config, **_ORDERS})

    def _placed(self, kind: type[ClientT]) -> type[ClientT]:
        return kind if self._given is None else in_environment(kind, self._given)
