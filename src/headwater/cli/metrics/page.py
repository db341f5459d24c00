"""A page of metrics in Prometheus' text format, as values that can be asked for.

What a line cannot be read as is skipped: a page may hold more than this program knows.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many observations there were at most `bound`, for growing bounds."""

    buckets: list[tuple[float, float]]
    count: float
    total: float

    def since(self, earlier: Histogram | None) -> Histogram:
        """What was observed after another reading of the same histogram."""
        if earlier is None or earlier.count > self.count:
            return self
        before = dict(earlier.buckets)
        return Histogram(
            [(bound, count - before.get(bound, 0)) for bound, count in self.buckets],
            self.count - earlier.count,
            self.total - earlier.total,
        )

    def quantile(self, share: float) -> float:
        """The bound that this share of the observations does not exceed; nan without any."""
        if self.count <= 0:
            return math.nan
        for bound, count in self.buckets:
            if count >= share * self.count:
                return bound
        return math.inf

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count > 0 else math.nan


class MetricsPage:
    """All samples of a page, by the name of their metric."""

    def __init__(self, text: str) -> None:
        self._samples: dict[str, list[Sample]] = defaultdict(list)
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            match = _SAMPLE.fullmatch(line)
            if match is None:
                continue
            try:
                value = float(match[3])
            except ValueError:
                continue
            labels = {
                name: _ESCAPE.sub(_unescaped, text) for name, text in _LABEL.findall(match[2] or "")
            }
            self._samples[match[1]].append(Sample(labels, value))

    def __contains__(self, name: str) -> bool:
        return name in self._samples

    def samples(self, name: str) -> list[Sample]:
        return self._samples.get(name, [])

    def value(self, name: str) -> float | None:
        """The value of a metric without labels, or the sum over all of its labels."""
        samples = self._samples.get(name)
        return None if not samples else sum(sample.value for sample in samples)

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Sums by the value of one label."""
        sums: dict[str, float] = defaultdict(float)
        for labels, value in self.samples(name):
            sums[labels.get(label, "")] += value
        return dict(sums)

    def histograms(self, name: str, label: str) -> dict[str, Histogram]:
        """The histograms of a metric by the value of one label."""
        buckets: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for labels, value in self.samples(f"{name}_bucket"):
            buckets[labels.get(label, "")].append((float(labels.get("le", "inf")), value))
        counts = self.by_label(f"{name}_count", label)
        totals = self.by_label(f"{name}_sum", label)
        return {
            key: Histogram(sorted(found), counts.get(key, 0.0), totals.get(key, 0.0))
            for key, found in buckets.items()
        }


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
