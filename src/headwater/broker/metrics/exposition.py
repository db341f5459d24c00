"""Metrics as Prometheus' text format has them.

A family is written as pieces of text with a bounded number of lines each, so that whoever sends
them can let others have a turn in between: a broker with thousands of partitions has tens of
thousands of lines. That, and the time that importing it takes, is why the official library does not
do this; the tests read what is written here with its parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LINES_PER_PIECE: Final = 500

#: The text of a set of labels as `labels` makes it, and a value.
Sample = tuple[str, float]

_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_LABEL_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def labels(values: Mapping[str, object]) -> str:
    """Labels as they stand behind a name."""
    inside = ",".join(
        f'{name}="{str(value).translate(_LABEL_ESCAPES)}"' for name, value in values.items()
    )
    return f"{{{inside}}}" if inside else ""


def counter(name: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Something that only grows; its name ends in `_total`."""
    return _family(name, "counter", help_text, samples)


def gauge(name: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Something that goes up and down."""
    return _family(name, "gauge", help_text, samples)


def histogram(
    name: str,
    help_text: str,
    series: Iterable[tuple[Mapping[str, object], Iterable[tuple[float, int]], int, float]],
) -> Iterator[str]:
    """For each set of labels: counts by upper bound, the count of all, and their sum."""
    yield _head(name, "histogram", help_text)
    for names, bounds, count, total in series:
        lines = [
            f"{name}_bucket{labels({**names, 'le': repr(bound)})} {below}\n"
            for bound, below in bounds
        ]
        lines.append(f"{name}_bucket{labels({**names, 'le': '+Inf'})} {count}\n")
        lines.append(f"{name}_sum{labels(names)} {total!r}\n")
        lines.append(f"{name}_count{labels(names)} {count}\n")
        yield "".join(lines)


def summary(name: str, help_text: str, series: Iterable[tuple[str, float, int]]) -> Iterator[str]:
    """For each set of labels, as `labels` makes it: the sum of what was seen, and its count."""
    yield _head(name, "summary", help_text)
    lines = (
        f"{name}_sum{names} {total!r}\n{name}_count{names} {count}\n"
        for names, total, count in series
    )
    while piece := "".join(islice(lines, LINES_PER_PIECE)):
        yield piece


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield _head(name, kind, help_text)
    lines = (f"{name}{names} {value!r}\n" for names, value in samples)
    while piece := "".join(islice(lines, LINES_PER_PIECE)):
        yield piece


def _head(name: str, kind: str, help_text: str) -> str:
    return f"# HELP {name} {help_text.translate(_HELP_ESCAPES)}\n# TYPE {name} {kind}\n"
