"""The text format, read back by Prometheus' own parser."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from headwater.broker.metrics.exposition import (
    LINES_PER_PIECE,
    counter,
    gauge,
    histogram,
    labels,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=30)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=20, unique=True), TEXT)
def test_any_label_and_help_is_read_back(names: list[tuple[str, str]], help_text: str) -> None:
    samples = [(labels({"a": a, "b": b}), number) for number, (a, b) in enumerate(names)]
    text = "".join(gauge("x", f"Help: {help_text}", samples))
    (family,) = text_string_to_metric_families(text)
    assert family.type == "gauge"
    read = [(sample.labels["a"], sample.labels["b"], sample.value) for sample in family.samples]
    assert read == [(a, b, number) for number, (a, b) in enumerate(names)]


def test_counters_and_plain_values() -> None:
    text = "".join(counter("x_total", "X.", [("", 2**60)]))
    (family,) = text_string_to_metric_families(text)
    assert (family.name, family.type, family.documentation) == ("x", "counter", "X.")
    assert family.samples[0].value == float(2**60)
    assert labels({}) == ""


def test_a_histogram_has_buckets_count_and_sum() -> None:
    series = [({"api": "Fetch"}, [(0.001, 2), (0.01, 5)], 7, 1.5)]
    (family,) = text_string_to_metric_families("".join(histogram("x", "X.", series)))
    assert family.type == "histogram"
    assert [(each.name, each.labels.get("le"), each.value) for each in family.samples] == [
        ("x_bucket", "0.001", 2.0),
        ("x_bucket", "0.01", 5.0),
        ("x_bucket", "+Inf", 7.0),
        ("x_sum", None, 1.5),
        ("x_count", None, 7.0),
    ]


def test_pieces_are_bounded() -> None:
    samples = [(labels({"n": number}), number) for number in range(3 * LINES_PER_PIECE + 1)]
    pieces = list(gauge("x", "X.", samples))
    assert max(piece.count("\n") for piece in pieces) <= LINES_PER_PIECE
    (family,) = text_string_to_metric_families("".join(pieces))
    assert len(family.samples) == len(samples)
