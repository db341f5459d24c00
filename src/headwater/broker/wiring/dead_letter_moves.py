"""Which topics take dead letters, and who moves them there: what `delay` asks of a broker."""

from __future__ import annotations

from collections.abc import Callable

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.ids import TopicPartition
from headwater.broker.context import BrokerContext
from headwater.broker.environment import OpenMoveSession
from headwater.delay.dead_letters.moves import MoveSession

_ALLOWED = "errors.deadletterqueue.group.enable"


class BrokerMoves:
    """The broker's `DeadLetterMoves`. Transactions are run by whoever the environment names."""

    def __init__(
        self,
        context: Callable[[], BrokerContext],
        own_address: Callable[[], str],
        open_session: OpenMoveSession | None,
    ) -> None:
        self._context = context
        self._own_address = own_address
        self._open_session = open_session

    def refusal(self, target: str) -> str | None:
        """Why a topic cannot take dead letters just now, as a sentence; None if it can."""
        image = self._context().image
        if target not in image.topics:
            return f"There is no topic {target!r} for them."
        configs = image.topic_configs(target)
        if configs.get(_ALLOWED) != "true":
            return f"The topic {target!r} does not take dead letters: set {_ALLOWED}=true for it."
        if configs.get("delay.mode", "off") != "off":
            return f"The topic {target!r} delays records, and dead letters are not to wait."
        return None

    async def open(self, source: TopicPartition) -> MoveSession:
        """A session, before which nothing that an earlier one did is undecided."""
        if self._open_session is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "This broker was started without what moves dead letters.",
            )
        return await self._open_session(self._own_address(), source)
