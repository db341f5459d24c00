"""AlterPartitionReassignments (API 45) with what a move of ours has besides: its throttle.

The field is tagged: brokers that do not know it, Apache Kafka's among them, pass over it, and who
does not say it changes nothing. Ask ListPartitionReassignments first whether they know it.

    -1    as before: a move that begins has none, one that is turned around keeps its own
     0    none
    > 0   what a broker may send or receive for replicas that are being added, in bytes a second

Without any topics the throttle is given to all moves that are under way.
"""

from headwater.wire.messages import alter_partition_reassignments as kafkas
from headwater.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
)
from headwater.wire.messages.alter_partition_reassignments import ReassignableTopic
from headwater.wire.schema import NEW, Field

#: Far from those that Kafka may give away.
THROTTLE_TAG = 10_000
AS_BEFORE = -1


class AlterPartitionReassignmentsRequest(kafkas.AlterPartitionReassignmentsRequest):
    __slots__ = ("throttle",)

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = NEW,
        throttle: int = AS_BEFORE,
    ) -> None:
        super().__init__(
            timeout_ms=timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=topics,
        )
        self.throttle = throttle

    # A tuple that is longer than that of the class is of another type.
    FIELDS = (  # type: ignore[assignment]
        *kafkas.AlterPartitionReassignmentsRequest.FIELDS,
        Field("throttle", "int64", (0, 1), tag=THROTTLE_TAG, tagged=(0, 1)),
    )
