"""What can go wrong in a producer before a record is on its way, or because it takes too long."""

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
