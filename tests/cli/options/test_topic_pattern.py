import pytest
import typer

from headwater.cli.options.topic_pattern import choose_topics

NAMES = ["orders", "orders.eu", "orders-eu", "payments", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        (None, sorted(NAMES)),
        ("orders", ["orders"]),
        ("order", []),
        ("orders.*", ["orders", "orders-eu", "orders.eu"]),
        ("orders.eu", ["orders.eu"]),
        ("orders.e.", ["orders-eu", "orders.eu"]),
        ("orders,payments", ["orders", "payments"]),
        ("'pay.*'", ["payments"]),
        ("(?!__).*ts", ["payments"]),
    ],
)
def test_a_pattern_matches_the_whole_name(pattern: str | None, chosen: list[str]) -> None:
    assert choose_topics(NAMES, pattern) == chosen


def test_a_mistake_is_told() -> None:
    with pytest.raises(typer.BadParameter, match="is not a regular expression"):
        choose_topics(NAMES, "orders(")
