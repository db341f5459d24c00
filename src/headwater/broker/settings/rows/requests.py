"""What requests may ask for, and those that wait."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable

_INT = SettingKind.INT
_NO_PURGE = "An operation that is done leaves its purgatory at once, so there is nothing to purge."

# fmt: off
REQUEST_SETTINGS: Final = SettingTable("broker", [
    Setting("fetch.max.bytes", _INT, 55 << 20, "The most that one fetch is answered with, unless "
            "its first batch alone is larger.", lower=1024),
    Setting("max.incremental.fetch.session.cache.slots", _INT, 1000, "How many incremental fetch "
            "sessions are remembered.", lower=0),
    Setting("max.request.partition.size.limit", _INT, 2000, "How many partitions one answer to "
            "DescribeTopicPartitions has at most.", lower=1),
    Setting("fetch.purgatory.purge.interval.requests", _INT, 1000, "After how many fetches those "
            "that are done are removed from the waiting ones.", without_effect=_NO_PURGE),
    Setting("producer.purgatory.purge.interval.requests", _INT, 1000, "After how many "
            "produce requests those that are done are removed from the waiting ones.",
            without_effect=_NO_PURGE),
    Setting("delete.records.purgatory.purge.interval.requests", _INT, 1, "After how "
            "many deletions of records those that are done are removed from the waiting ones.",
            without_effect=_NO_PURGE),
])
# fmt: on
