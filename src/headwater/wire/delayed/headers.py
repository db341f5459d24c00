"""The headers by which records are delayed, tried again and given up.

A record asks for a delay by the first ones, and once it is delivered it has the next behind those
that were sent.

A record that could not be handled takes the others with it on its way round a retry topic, and into
a dead-letter topic. `headwater-origin` is the name of the message on the whole way: the place where
it was read first, `orders-0@1234`. Dead letters also have the headers that Apache Kafka gives to
those of share groups. All values are text.
"""

from __future__ import annotations

from typing import Final

#: The headers by which a record asks for a delay, and what else it may say.
DELAY_HEADER: Final = "headwater-delay"
DELIVER_AT_HEADER: Final = "headwater-deliver-at"
DELAY_ID_HEADER: Final = "headwater-delay-id"
EXPIRE_AT_HEADER: Final = "headwater-expire-at"

#: The headers of a delivered record, behind those that were sent.
SENT_AT_HEADER: Final = "headwater-sent-at"
DELAYED_OFFSET_HEADER: Final = "headwater-delayed-offset"
ORDER_HEADER: Final = "headwater-order"

#: Where a record that failed was read first: its name from then on.
ORIGIN_HEADER: Final = "headwater-origin"
#: How often it was handled in vain.
ATTEMPTS_HEADER: Final = "headwater-attempts"
#: When it failed first and last, in ms since 1970.
FIRST_FAILURE_HEADER: Final = "headwater-first-failure"
LAST_FAILURE_HEADER: Final = "headwater-last-failure"
#: Why it failed last: a sentence, the class of the error, the end of its stack.
ERROR_HEADER: Final = "headwater-error"
ERROR_CLASS_HEADER: Final = "headwater-error-class"
ERROR_STACK_HEADER: Final = "headwater-error-stack"
#: Why it failed first, as far as that was told.
FIRST_ERROR_HEADER: Final = "headwater-first-error"
FIRST_ERROR_CLASS_HEADER: Final = "headwater-first-error-class"
#: The next attempt shall come after this time, and not after that of the policy.
RETRY_AFTER_HEADER: Final = "headwater-retry-after"
#: It is a dead letter, whatever attempts are left, for this reason.
DEAD_HEADER: Final = "headwater-dead"
#: How often it was sent back from a dead-letter topic.
REDRIVES_HEADER: Final = "headwater-redrives"

#: Of a row that Spark could not write: where it should have gone, and which query's it was.
WANTED_TOPIC_HEADER: Final = "headwater-wanted-topic"
WANTED_PARTITION_HEADER: Final = "headwater-wanted-partition"
QUERY_HEADER: Final = "headwater-query"
BATCH_HEADER: Final = "headwater-batch"

#: What Apache Kafka writes into dead letters of share groups.
DLQ_TOPIC_HEADER: Final = "__dlq.errors.topic"
DLQ_PARTITION_HEADER: Final = "__dlq.errors.partition"
DLQ_OFFSET_HEADER: Final = "__dlq.errors.offset"
DLQ_GROUP_HEADER: Final = "__dlq.errors.group"
DLQ_DELIVERY_COUNT_HEADER: Final = "__dlq.errors.delivery.count"
DLQ_MESSAGE_HEADER: Final = "__dlq.errors.message"
