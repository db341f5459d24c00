"""Kafka's flags instead of words: `topics --create --topic x` means `topics create --topic x`.

Kafka's tools name the action by a flag that may stand anywhere. Here an action is a subcommand, so
the command line is put into words before it is parsed, and each action exists once. Some of their
options may come without a value, which typer does not know: those get an empty one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

CLUSTER_OPTIONS: Final = ("--bootstrap-server", "-b")


def in_words(
    arguments: Sequence[str], actions: Collection[str], words: Collection[str] = ()
) -> list[str]:
    """The arguments of a subcommand with the action in front, whichever way it was given.

    `words` are actions that no flag stands for.
    """
    given = list(arguments)
    if not given or given[0] in actions or given[0] in words:
        return given
    for position, argument in enumerate(given):
        if argument == "--":
            break
        if argument.startswith("--") and argument[2:] in actions:
            return [argument[2:], *given[:position], *given[position + 1 :]]
    # The cluster may be named before the word.
    size = _cluster_option_size(given)
    if 0 < size < len(given) and (given[size] in actions or given[size] in words):
        return [given[size], *given[:size], *given[size + 1 :]]
    return given


def with_empty_values(arguments: Sequence[str], options: Collection[str]) -> list[str]:
    """The arguments with an empty value for each of these options that has none."""
    following = [*arguments[1:], "--"]
    return [
        f"{argument}=" if argument in options and after.startswith("-") else argument
        for argument, after in zip(arguments, following, strict=False)
    ]


def _cluster_option_size(given: Sequence[str]) -> int:
    """How many arguments at the front name the cluster."""
    if given[0] in CLUSTER_OPTIONS:
        return 2
    return 1 if given[0].startswith(f"{CLUSTER_OPTIONS[0]}=") else 0
