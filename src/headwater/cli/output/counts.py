"""Numbers of things as people write them: 1 record, 2,000 records."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """The number with its noun; the plural is the noun with an s unless it is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
