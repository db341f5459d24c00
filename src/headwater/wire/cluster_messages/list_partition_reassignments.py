"""ListPartitionReassignments (API 46) with what a move of ours has besides: its throttle.

The field is tagged, so that clients of Kafka's pass over it. A broker that knows of throttles names
those that there are, or none; where the field is missing, it is null, and moves cannot have one.
"""

from headwater.wire.messages import list_partition_reassignments as kafkas
from headwater.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
)
from headwater.wire.messages.list_partition_reassignments import OngoingTopicReassignment
from headwater.wire.schema import NEW, Field, Struct

THROTTLES_TAG = 10_000
_V0 = (0, 0)


class ThrottledReassignment(Struct):
    __slots__ = ("partition_index", "throttle", "topic")

    def __init__(self, *, topic: str = "", partition_index: int = 0, throttle: int = 0) -> None:
        self.topic = topic
        self.partition_index = partition_index
        self.throttle = throttle

    FIELDS = (
        Field("topic", "string", _V0),
        Field("partition_index", "int32", _V0),
        Field("throttle", "int64", _V0),
    )


class ListPartitionReassignmentsResponse(kafkas.ListPartitionReassignmentsResponse):
    __slots__ = ("throttles",)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = NEW,
        throttles: list[ThrottledReassignment] | None = None,
    ) -> None:
        super().__init__(
            throttle_time_ms=throttle_time_ms,
            error_code=error_code,
            error_message=error_message,
            topics=topics,
        )
        self.throttles = throttles

    # A tuple that is longer than that of the class is of another type.
    FIELDS = (  # type: ignore[assignment]
        *kafkas.ListPartitionReassignmentsResponse.FIELDS,
        Field(
            "throttles",
            ThrottledReassignment,
            _V0,
            array=True,
            nullable=_V0,
            tag=THROTTLES_TAG,
            tagged=_V0,
        ),
    )
