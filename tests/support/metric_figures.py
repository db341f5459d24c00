"""The figures on a page of metrics, read by Prometheus' own parser."""

from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families

#: By name and labels.
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(pieces: Iterable[str]) -> Figures:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families("".join(pieces))
        for sample in family.samples
    }


def figure(figures: Figures, name: str, **names: str) -> float:
    return figures[name, frozenset(names.items())]
