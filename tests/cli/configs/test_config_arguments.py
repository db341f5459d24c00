import pytest
import typer

from headwater.cli.configs.arguments import (
    BROKERS,
    TOPICS,
    Entity,
    check_entity,
    choose_entity,
    parse_changes,
    parse_names,
)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        (" a = 1 , b=2,", {"a": "1", "b": "2"}),
        ("a=[x,y],b=2", {"a": "x,y", "b": "2"}),
        ("a=[],b=", {"a": "", "b": ""}),
        ("a=x=y", {"a": "x=y"}),
    ],
)
def test_changes(text: str, changes: dict[str, str]) -> None:
    assert parse_changes(text) == changes


@pytest.mark.parametrize("text", ["", "a", "=1", "a=1,b", "a=[x,y"])
def test_what_is_no_change_is_told(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        print(parse_changes(text))


def test_names() -> None:
    assert parse_names("a, b,,c") == ["a", "b", "c"]


def test_an_entity_is_named_in_one_way() -> None:
    none = {TOPICS: None, BROKERS: None}
    assert choose_entity(TOPICS, "orders", False, none, False) == Entity(TOPICS, "orders")
    assert choose_entity(None, None, False, none | {TOPICS: "x"}, False) == Entity(TOPICS, "x")
    assert choose_entity(None, None, False, none, True) == Entity(BROKERS, None, True)
    for wrong in (
        (None, None, False, none, False),
        (TOPICS, None, False, none, True),
        (None, None, False, {TOPICS: "x", BROKERS: "1"}, False),
    ):
        with pytest.raises(typer.BadParameter, match="belong to, once"):
            choose_entity(*wrong)


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        (Entity("users", "x"), "is not one of topics, brokers, broker-loggers"),
        (Entity(TOPICS, None, is_default=True), "only brokers have a default"),
        (Entity(BROKERS, "1", is_default=True), "only brokers have a default"),
        (Entity(BROKERS, "one"), "is not the number of a broker"),
        (Entity("broker-loggers", None), "name the broker"),
    ],
)
def test_an_entity_that_cannot_be(entity: Entity, reason: str) -> None:
    with pytest.raises(typer.BadParameter, match=reason):
        check_entity(entity)
