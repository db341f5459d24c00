"""The series of clients' metrics that the page of metrics shows, of a bounded number.

A series is a family, and labels with an instance among them. A push brings new values: those since
the beginning replace what is there, those since the last push (which we do not ask for) are added.
What a client has not pushed for three intervals is forgotten, a series or all of its series; so is
a value that it does not know any more. When there are as many series as may be, new ones are
dropped and counted, and those that are there go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from headwater.broker.telemetry.metrics_data import PointKind
from headwater.broker.telemetry.samples import INFO, Sample, is_shown

#: Of a series: its family and its labels.
_Key = tuple[str, str]


class Shown(NamedTuple):
    """A line of a family, or of a summary two."""

    labels: str
    value: float
    seen_count: int


class _Series:
    __slots__ = ("expires_ms", "seen_count", "value")

    def __init__(self) -> None:
        self.value: float = 0
        self.seen_count = 0
        self.expires_ms = 0.0


class _Family:
    """Metrics of one name, which are all of one kind: the first that came decides."""

    def __init__(self, kind: PointKind) -> None:
        self.kind = kind
        self.series: dict[str, _Series] = {}


class ClientSeries:
    """Its owner is `ClientTelemetry`; it lives on the event loop."""

    def __init__(self, series_max: Callable[[], int]) -> None:
        self._series_max = series_max
        self._families: dict[str, _Family] = {}
        #: By instance, its series: family and labels.
        self._of_instance: dict[str, set[_Key]] = {}
        self._count = 0
        self.dropped_count = 0

    def __len__(self) -> int:
        return self._count

    def take(
        self, instance: str, samples: Iterable[Sample], now_ms: float, expires_ms: float
    ) -> None:
        """New values of an instance, which hold until `expires_ms`."""
        for sample in samples:
            if sample.family == INFO:
                # What an instance says of itself has changed: two lines would contradict.
                self._forget_if(instance, lambda key: key[0] == INFO)
            self._take(instance, sample, expires_ms)
        self._forget_if(instance, lambda key: self._series(key).expires_ms <= now_ms)

    def forget_expired(self, now_ms: float) -> Iterator[None]:
        """Let go of instances that have stopped pushing; others may have a turn in between."""
        for instance in [*self._of_instance]:
            self._forget_if(instance, lambda key: self._series(key).expires_ms <= now_ms)
            yield

    def families(self) -> Iterator[tuple[str, PointKind, list[Shown]]]:
        """All that there is, a family at a time."""
        for name in sorted(self._families):
            family = self._families.get(name)
            if family is not None:
                yield (
                    name,
                    family.kind,
                    [
                        Shown(names, each.value, each.seen_count)
                        for names, each in family.series.items()
                    ],
                )

    def _take(self, instance: str, sample: Sample, expires_ms: float) -> None:
        family = self._families.get(sample.family)
        if family is not None and family.kind is not sample.kind:
            self.dropped_count += 1
            return
        key = sample.family, sample.labels
        series = None if family is None else family.series.get(sample.labels)
        if not is_shown(sample.value):
            if series is not None:
                self._forget(instance, key)
            return
        if series is None:
            if self._count >= self._series_max():
                self.dropped_count += 1
                return
            if family is None:
                family = self._families[sample.family] = _Family(sample.kind)
            series = family.series[sample.labels] = _Series()
            self._of_instance.setdefault(instance, set()).add(key)
            self._count += 1
        series.value = sample.value + (series.value if sample.is_delta else 0)
        series.seen_count = sample.seen_count + (series.seen_count if sample.is_delta else 0)
        series.expires_ms = expires_ms

    def _series(self, key: _Key) -> _Series:
        family, names = key
        return self._families[family].series[names]

    def _forget_if(self, instance: str, is_over: Callable[[_Key], bool]) -> None:
        for key in [each for each in self._of_instance.get(instance, ()) if is_over(each)]:
            self._forget(instance, key)

    def _forget(self, instance: str, key: _Key) -> None:
        family, names = key
        del self._families[family].series[names]
        if not self._families[family].series:
            del self._families[family]
        held = self._of_instance[instance]
        held.discard(key)
        if not held:
            del self._of_instance[instance]
        self._count -= 1
