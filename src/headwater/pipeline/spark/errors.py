"""What keeps Spark from running here, in one sentence that says what to do."""

from headwater.base.errors import KafkaError


class SparkUnavailableError(KafkaError):
    """Spark cannot be started; the message says what is missing."""
