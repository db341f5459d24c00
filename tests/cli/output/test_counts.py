import pytest

from headwater.cli.output.counts import counted


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1200, "1,200 records")],
)
def test_a_number_with_its_noun(count: int, text: str) -> None:
    assert counted(count, "record") == text


def test_a_plural_of_its_own() -> None:
    assert (counted(1, "reply", "replies"), counted(2, "reply", "replies")) == (
        "1 reply",
        "2 replies",
    )
