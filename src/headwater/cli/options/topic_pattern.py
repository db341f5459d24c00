"""Topics chosen by a pattern, as Kafka's tools do it.

A pattern is a regular expression that must match the whole name; commas separate alternatives. A
topic that is called exactly so is meant alone, though: `orders.eu` must not delete `orders-eu`
because a dot matches anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import typer


def compile_pattern(text: str) -> re.Pattern[str]:
    """The pattern; a mistake in it is one of the command line."""
    alternatives = text.strip().strip("'\"").replace(",", "|")
    try:
        return re.compile(f"(?:{alternatives})")
    except re.error as error:
        raise typer.BadParameter(
            f"{text!r} is not a regular expression: {error}", param_hint="--topic"
        ) from None


def choose_topics(names: Iterable[str], pattern: str | None) -> list[str]:
    """Of `names` those that are meant, sorted; all without a pattern."""
    known = sorted(names)
    if pattern is None:
        return known
    compiled = compile_pattern(pattern)
    if pattern in known:
        return [pattern]
    return [name for name in known if compiled.fullmatch(name)]
