"""The words that a shell asks about, in the form that the command is parsed in."""

import os

import pytest

from headwater.cli.app import in_words_of_subcommand
from headwater.cli.completion.words import prepare_completion


@pytest.mark.parametrize(
    ("typed", "position", "before", "incomplete"),
    [
        ("headwater to", 1, "", "to"),
        ("headwater topics ''", 2, "topics", ""),
        ("headwater topics --create --par", 3, "topics create", "--par"),
        ("headwater topics -b h : 9092 list --ex", 7, "topics list -b h:9092", "--ex"),
        ("headwater consume --isolation-level = read", 4, "consume --isolation-level", "read"),
        ("headwater consume --isolation-level =", 3, "consume --isolation-level", ""),
        ("headwater consume 'or", 2, "consume", "'or"),
    ],
)
def test_words_of_bash(
    typed: str, position: int, before: str, incomplete: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(position))
    assert prepare_completion(in_words_of_subcommand) == before.split()
    assert os.environ["COMP_CWORD"] == str(len(before.split()) + 1)
    assert os.environ["COMP_WORDS"].startswith(f"headwater {before}".rstrip())


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("headwater to", "headwater to"),
        ("headwater topics ", "headwater topics "),
        ("headwater topics --create --par", "headwater topics create --par"),
        ("headwater --", "headwater --"),
    ],
)
def test_the_line_of_zsh_and_fish(typed: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMP_WORDS", raising=False)
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
    prepare_completion(in_words_of_subcommand)
    assert os.environ["_TYPER_COMPLETE_ARGS"] == line
