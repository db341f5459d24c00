"""What can go wrong in a producer before a record is on its way, or because it takes too long."""

from headwater.base.errors import InvalidConfigError
from headwater.client.errors import DeadlineError


class TopicNotKnownError(DeadlineError):
    """Nobody has told within `max.block.ms` where a topic's partitions are."""

    advice = "See whether the topic exists and bootstrap.servers is right, or raise max.block.ms."


class BufferExhaustedError(DeadlineError):
    """All of `buffer.memory` is taken by records that are not written yet."""

    advice = "Send more slowly, or raise buffer.memory or max.block.ms."


class BatchExpiredError(DeadlineError):
    """A record was not written within `delivery.timeout.ms`."""

    advice = "It may have been written nevertheless, if it was sent and the answer was lost."


class NoDelaysError(InvalidConfigError):
    """A record is to be delivered later, and nothing there would delay it."""

    @classmethod
    def topic(cls, name: str, mode: str) -> "NoDelaysError":
        why = (
            "all of its records wait for delay.ms (delay.mode=fixed)"
            if mode == "fixed"
            else f"its delay.mode is {mode}"
        )
        return cls(
            f"A record of topic {name!r} cannot be given a delay: {why}. To let records say it: "
            f"headwater configs alter --topic {name} --add-config delay.mode=header"
        )

    @classmethod
    def level(cls, level_topic: str) -> "NoDelaysError":
        return cls(
            f"Nothing delays records here: this cluster has no delayed delivery of its own, and no "
            f"topic {level_topic!r}, or any other, of a delay service, which `headwater "
            "delay-service` runs."
        )

    @classmethod
    def options(cls) -> "NoDelaysError":
        return cls(
            "A delay service has delays alone: delay_id and expire_at need brokers of Headwater."
        )
