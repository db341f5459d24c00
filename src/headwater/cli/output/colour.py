"""Colour for people at a terminal: none in pipes and files, and none for those who set NO_COLOR."""

from __future__ import annotations

import os
import sys
from enum import Enum

import typer


class Tone(Enum):
    """What a colour says; the value is the colour."""

    GOOD = "green"
    WARNING = "yellow"
    BAD = "red"


def painted(text: str, tone: Tone | None) -> str:
    """The text in the colour of its tone, if standard output shows colours."""
    if tone is None or not shows_colour():
        return text
    return typer.style(text, fg=tone.value, bold=True if tone is Tone.BAD else None)


def heading(text: str) -> str:
    """A title or the header of a table: bold where it can be."""
    return typer.style(text, bold=True) if shows_colour() else text


def shows_colour() -> bool:
    """Whether standard output is a terminal with colours, and nobody objects (no-color.org)."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return is_wanted and sys.stdout.isatty()
