"""What a program in another language tells of delayed records that it sent and read as a group.

All such programs do the same: `PROGRAM BOOTSTRAP TOPIC GROUP COUNT` sends the numbers from 0 on, of
which every third, from 1 on, is delayed for a short while and every third, from 2 on, for an hour.
It reads what comes of the others, commits, and prints one JSON document.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class RoundTripRecord(NamedTuple):
    value: str
    partition: int
    offset: int
    timestamp_ms: int
    #: By the clock of the program.
    sent_ms: int
    arrived_ms: int


class DelayedRoundTrip(NamedTuple):
    records: list[RoundTripRecord]
    failure: str | None

    @classmethod
    def parse(cls, document: str) -> DelayedRoundTrip:
        told = json.loads(document)
        names = RoundTripRecord._fields
        records = [RoundTripRecord(*(each[name] for name in names)) for each in told["records"]]
        return cls(records, told["failure"])
