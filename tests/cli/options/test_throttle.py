"""Rates on a command line."""

import pytest
import typer

from headwater.cli.options.throttle import parse_throttle


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50MB", 50_000_000),
        ("50mb/s", 50_000_000),
        ("1.5 MB", 1_500_000),
        ("500kB", 500_000),
        ("2GiB", 2 << 30),
        ("1000", 1000),
        ("none", 0),
        (" NONE ", 0),
    ],
)
def test_rates(text: str, rate: int) -> None:
    assert parse_throttle(text) == rate


@pytest.mark.parametrize("text", ["", "MB", "-5MB", "5 apples", "0", "0.1", "1e9", "9999999999GB"])
def test_what_is_no_rate_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"no rate|nothing through|more than"):
        parse_throttle(text)
