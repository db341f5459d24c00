"""Numbers of things as people read them: `1 row`, `1,234 rows`."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun; `plural` is for nouns that do not just take an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
