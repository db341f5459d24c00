"""Which rules fire where, since when; what begins and ends is told once. Sans-io."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from headwater.cli.audit.watch.rules import Place, Reading, show_value

BEGIN = "begin"
END = "end"


class AlarmEvent(NamedTuple):
    """A rule begins to fire, or ends."""

    kind: str
    time_ms: int
    #: When it began.
    since_ms: int
    reading: Reading

    @property
    def sentence(self) -> str:
        place, rule = self.reading.place, self.reading.rule
        where = f"{place.topic}, group {place.group}" if place.group else place.topic
        value = show_value(rule.figure, self.reading.value)
        return f"{rule.figure} is {value} for {where} (rule {rule.name}: above " + (
            f"{show_value(rule.figure, rule.limit)})"
        )

    def to_json(self) -> dict[str, Any]:
        """As a record of the topic of alarms has it."""
        place, rule = self.reading.place, self.reading.rule
        return {
            "version": 1,
            "event": self.kind,
            "time": self.time_ms,
            "since": self.since_ms,
            "rule": rule.name,
            "figure": rule.figure,
            "limit": rule.limit,
            "value": self.reading.value,
            "topic": place.topic,
            "group": place.group or None,
            "message": self.sentence,
        }


class AlarmBoard:
    """The newest reading of each place, and which fire."""

    def __init__(self) -> None:
        self.readings: dict[Place, Reading] = {}
        self.since_ms: dict[Place, int] = {}

    def update(self, readings: Iterable[Reading], now_ms: int) -> list[AlarmEvent]:
        """What a whole round found; what is not among it any more does not fire any more."""
        earlier, self.readings = self.readings, {each.place: each for each in readings}
        events = []
        for place, since_ms in list(self.since_ms.items()):
            now = self.readings.get(place)
            if now is None or not now.fires:
                del self.since_ms[place]
                # Of a topic or a group that is gone the last that was known.
                events.append(AlarmEvent(END, now_ms, since_ms, now or earlier[place]))
        for place, reading in self.readings.items():
            if reading.fires and place not in self.since_ms:
                self.since_ms[place] = now_ms
                events.append(AlarmEvent(BEGIN, now_ms, now_ms, reading))
        return events
