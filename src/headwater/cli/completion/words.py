"""The words of a command line that a shell wants to have completed.

The scripts are typer's. They run `headwater` with the words so far in the environment, from where
typer reads them. Here they are put into the form that the command is parsed in: Kafka's flags as
words, and what bash splits at colons and equals signs in one piece again.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import Final

COMPLETE_VARIABLE: Final = "_HEADWATER_COMPLETE"
_BASH_WORDS: Final = "COMP_WORDS"
_BASH_POSITION: Final = "COMP_CWORD"
_LINE: Final = "_TYPER_COMPLETE_ARGS"

InWords = Callable[[list[str]], list[str]]


def prepare_completion(in_words: InWords) -> list[str]:
    """Get ready to answer the shell; returns the words in front of the one to complete."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
    if _BASH_WORDS in os.environ:
        program, before, incomplete = _bash_words()
        before = in_words(before)
        os.environ[_BASH_WORDS] = shlex.join([program, *before, incomplete])
        os.environ[_BASH_POSITION] = str(len(before) + 1)
        return before
    line = os.environ.get(_LINE, "")
    program, *words = _split(line) or ["headwater"]
    incomplete = words.pop() if words and not line.endswith(" ") else ""
    before = in_words(words)
    os.environ[_LINE] = f"{shlex.join([program, *before])} {incomplete}"
    return before


def _bash_words() -> tuple[str, list[str], str]:
    """The program, the words in front of the cursor, and the one at it."""
    words = _split(os.environ[_BASH_WORDS])
    position = int(os.environ.get(_BASH_POSITION) or 0)
    program, *before = words[: max(position, 1)] or ["headwater"]
    incomplete = words[position] if 0 < position < len(words) else ""
    if incomplete == "=":
        incomplete = ""
    elif before and before[-1] == "=":
        # `--option=val` is completed as `--option val` is.
        before.pop()
    return program, _joined(before), incomplete


def _joined(words: list[str]) -> list[str]:
    """Words as they were typed: bash makes `host`, `:` and `9092` of one."""
    joined: list[str] = []
    is_open = False
    for word in words:
        is_break = not word.strip(":=")
        if joined and (is_break or is_open):
            joined[-1] += word
        else:
            joined.append(word)
        is_open = is_break
    return joined


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # A quote is still open.
        return text.split()
