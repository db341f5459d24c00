import pytest
import typer

from headwater.cli.records.start_offsets import Start, parse_datetime, parse_start


@pytest.mark.parametrize(
    ("offset", "from_beginning", "from_datetime", "start"),
    [
        (None, False, None, Start(time=-1)),
        ("latest", False, None, Start(time=-1)),
        ("earliest", False, None, Start(time=-2)),
        (None, True, None, Start(time=-2)),
        ("17", False, None, Start(offset=17)),
        (None, False, "2026-01-31T12:00:00Z", Start(time=1769860800000)),
    ],
)
def test_where_to_start(
    offset: str | None, from_beginning: bool, from_datetime: str | None, start: Start
) -> None:
    assert parse_start(offset, from_beginning, from_datetime) == start


def test_only_one_place_can_be_the_start() -> None:
    with pytest.raises(typer.BadParameter, match="say once where to start"):
        parse_start("5", True, None)


@pytest.mark.parametrize("offset", ["-5", "five", "1.5", "٣"])
def test_an_offset_is_a_number(offset: str) -> None:
    with pytest.raises(typer.BadParameter, match="is neither an offset nor earliest or latest"):
        parse_start(offset, False, None)


def test_times() -> None:
    at_noon = parse_datetime("2026-01-31T12:00:00+00:00")
    assert parse_datetime("2026-01-31T13:00:00+01:00") == at_noon
    assert parse_datetime("2026-01-31T12:00:00.250Z") == at_noon + 250
    assert abs(parse_datetime("2026-01-31") - at_noon) <= 36 * 3600 * 1000
    with pytest.raises(typer.BadParameter, match="should be like 2026"):
        parse_datetime("yesterday")
