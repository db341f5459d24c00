"""Reads given ranges of offsets: without a group, fetched ahead, as columns."""

from headwater.client.ranges.range_client import RangeClient as RangeClient
