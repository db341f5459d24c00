"""The errors that clients raise, for `from headwater import errors`: one for each of Kafka's codes.

Each has its `code`, whether it is `retriable`, and an `advice` where something can be done about
it, which tracebacks show. `except errors.RetriableError` takes all that may pass.
"""

from headwater.base.errors import CorruptMessageError as CorruptMessageError
from headwater.base.errors import InvalidConfigError as InvalidConfigError
from headwater.base.errors import InvalidRecordError as InvalidRecordError
from headwater.base.errors import InvalidTopicError as InvalidTopicError
from headwater.base.errors import NetworkError as NetworkError
from headwater.base.errors import RequestTimedOutError as RequestTimedOutError
from headwater.base.errors import UnsupportedCompressionTypeError as UnsupportedCompressionTypeError
from headwater.base.errors import UnsupportedVersionError as UnsupportedVersionError
from headwater.base.setting import SettingError as SettingError
from headwater.client.consumer.committed.errors import CommitFailedError as CommitFailedError
from headwater.client.consumer.errors import ConcurrentUseError as ConcurrentUseError
from headwater.client.consumer.errors import InvalidOffsetError as InvalidOffsetError
from headwater.client.consumer.errors import LogTruncationError as LogTruncationError
from headwater.client.consumer.errors import NoGroupError as NoGroupError
from headwater.client.consumer.errors import (
    NoOffsetForPartitionError as NoOffsetForPartitionError,
)
from headwater.client.consumer.errors import NotAssignedError as NotAssignedError
from headwater.client.consumer.errors import (
    RecordDeserializationError as RecordDeserializationError,
)
from headwater.client.consumer.errors import SubscriptionError as SubscriptionError
from headwater.client.consumer.errors import WakeupError as WakeupError
from headwater.client.errors import BrokerUnreachableError as BrokerUnreachableError
from headwater.client.errors import ClientClosedError as ClientClosedError
from headwater.client.errors import DeadlineError as DeadlineError
from headwater.client.errors import InvalidAddressError as InvalidAddressError
from headwater.client.errors import NoBrokerError as NoBrokerError
from headwater.client.errors import SeveralFailedError as SeveralFailedError
from headwater.client.errors import UnknownBrokerError as UnknownBrokerError
from headwater.client.errors import UnknownGroupError as UnknownGroupError
from headwater.client.errors import UnknownTopicError as UnknownTopicError
from headwater.client.fetch.corrupt_batches import CorruptBatchError as CorruptBatchError
from headwater.client.kafka_errors.access_errors import *  # noqa: F403
from headwater.client.kafka_errors.cluster_errors import *  # noqa: F403
from headwater.client.kafka_errors.group_errors import *  # noqa: F403
from headwater.client.kafka_errors.other_errors import *  # noqa: F403
from headwater.client.kafka_errors.record_errors import *  # noqa: F403
from headwater.client.kafka_errors.topic_errors import *  # noqa: F403
from headwater.client.kafka_errors.transaction_errors import *  # noqa: F403
from headwater.client.producer.errors import BatchExpiredError as BatchExpiredError
from headwater.client.producer.errors import BufferExhaustedError as BufferExhaustedError
from headwater.client.producer.errors import NoDelaysError as NoDelaysError
from headwater.client.producer.errors import TopicNotKnownError as TopicNotKnownError
from headwater.client.producer.intake.serializers import SerializationError as SerializationError
from headwater.client.producer.transactions.coordinator_errors import (
    TransactionAbortedError as TransactionAbortedError,
)
from headwater.client.producer.transactions.coordinator_errors import (
    TransactionPendingError as TransactionPendingError,
)
from headwater.client.spool.errors import SpoolDamagedError as SpoolDamagedError
from headwater.client.spool.errors import SpoolError as SpoolError
from headwater.client.spool.errors import SpoolFullError as SpoolFullError
from headwater.client.spool.errors import SpoolLockedError as SpoolLockedError
from headwater.client.spool.errors import SpoolRecordTooLargeError as SpoolRecordTooLargeError
from headwater.client.spool.errors import SpoolVersionError as SpoolVersionError
