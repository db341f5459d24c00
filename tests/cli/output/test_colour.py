"""Colour at a terminal, and nowhere else."""

import io
import uuid
from types import SimpleNamespace

import pytest

from headwater.cli.doctor.command import _line
from headwater.cli.doctor.findings import good, note, problem
from headwater.cli.groups.tables import state_tone
from headwater.cli.output import colour
from headwater.cli.output.colour import Tone, heading, painted, shows_colour
from headwater.cli.output.plain_table import Column, Row, table_lines
from headwater.cli.topics.description import describe_topic
from headwater.cli.topics.partition_filter import PartitionFilter
from headwater.client.connection.cluster_metadata import PartitionInfo, TopicInfo

RED, GREEN, YELLOW, BOLD, END = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
BEHIND = PartitionInfo(0, 1, 0, (1, 2), (1,))
LEADERLESS = PartitionInfo(1, -1, 0, (1, 2), ())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colour, "sys", SimpleNamespace(stdout=Terminal()))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def described() -> list[str]:
    topic = TopicInfo("orders", uuid.UUID(int=1), False, (BEHIND, LEADERLESS))
    return list(describe_topic(topic, [], PartitionFilter.ALL, frozenset({1, 2}), {}))


def test_a_terminal_shows_colours(terminal: None) -> None:
    assert shows_colour()
    assert painted("x", Tone.GOOD) == f"{GREEN}x{END}"
    assert painted("x", Tone.BAD) == f"{RED}{BOLD}x{END}"
    assert painted("x", None) == "x"
    assert heading("X") == f"{BOLD}X{END}"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_does_not_want_them_gets_none(
    name: str, value: str, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert painted("x", Tone.BAD) == heading("x") == "x"


def test_a_pipe_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colour, "sys", SimpleNamespace(stdout=io.StringIO()))
    assert painted("x", Tone.BAD) == heading("x") == "x"
    assert not any("\x1b" in line for line in [_line(problem("disk", "Full.")), *described()])


def test_colours_take_no_room_in_a_table(terminal: None) -> None:
    columns = [
        Column("STATE", "state", 8, tone=state_tone),
        Column("LAG", "lag", is_number=True),
        Column("HOST", "host"),
    ]
    rows: list[Row] = [
        {"state": "Stable", "lag": 7, "host": "a"},
        {"state": "Empty", "lag": 1000, "host": None},
    ]
    assert list(table_lines(columns, rows)) == [
        f"{BOLD}STATE{END}     {BOLD}LAG{END} {BOLD}HOST{END}",
        f"{GREEN}Stable{END}      7 a",
        "Empty    1000 -",
    ]


def test_what_is_wrong_with_a_topic_stands_out(terminal: None) -> None:
    first, behind, leaderless = described()
    assert first.startswith(BOLD)
    assert f"\t{YELLOW}Isr: 1{END}" in behind and "Leader: 1\t" in behind
    assert f"\t{RED}{BOLD}Leader: none{END}\t" in leaderless


def test_verdicts_of_the_doctor(terminal: None) -> None:
    assert _line(good("disk", "Fine.")) == f"{GREEN}ok  {END}  disk:        Fine."
    assert _line(note("disk", "Slow.")).startswith(f"{YELLOW}note{END}  ")
    assert _line(problem("disk", "Full.")).startswith(f"{RED}{BOLD}BAD {END}  ")
