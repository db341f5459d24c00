import pytest
import typer

from headwater.cli.options.choice import completed_by, did_you_mean, one_of

NAMES = ("gzip", "snappy", "lz4")


def test_one_of_a_few() -> None:
    assert one_of("gzip", NAMES, "--codec") == "gzip"
    with pytest.raises(typer.BadParameter, match=r"'rar' is not one of gzip, snappy, lz4$"):
        one_of("rar", NAMES, "--codec")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("snapy", "; did you mean 'snappy'?"),
        ("rar", ""),
        ("snappy", ""),
    ],
)
def test_what_was_meant(text: str, hint: str) -> None:
    assert did_you_mean(text, NAMES) == hint


def test_another_number_is_another_thing() -> None:
    assert did_you_mean("orders-2", ["orders-1", "orders-3"]) == ""
    assert did_you_mean("ordres-2", ["orders-1"]) == "; did you mean 'orders-1'?"


def test_what_a_shell_offers() -> None:
    assert completed_by(NAMES)() == list(NAMES)
