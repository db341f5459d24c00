"""Which partitions `headwater topics --describe` shows."""

from enum import Enum


class PartitionFilter(Enum):
    """What to show: all, topics with own settings, or only partitions in some kind of trouble."""

    ALL = "all"
    WITH_OVERRIDES = "--topics-with-overrides"
    UNDER_REPLICATED = "--under-replicated-partitions"
    UNAVAILABLE = "--unavailable-partitions"
    UNDER_MIN_ISR = "--under-min-isr-partitions"
    AT_MIN_ISR = "--at-min-isr-partitions"
