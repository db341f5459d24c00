"""A name out of a few on a command line, and the sentence for one that is none of them."""

from __future__ import annotations

from collections.abc import Callable, Collection

import typer


def one_of(text: str, names: Collection[str], option: str) -> str:
    """The name, if it is one of these."""
    if text not in names:
        raise typer.BadParameter(
            f"{text!r} is not one of {', '.join(names)}{did_you_mean(text, names)}",
            param_hint=option,
        )
    return text


def did_you_mean(text: str, names: Collection[str]) -> str:
    """`; did you mean 'x'?` if one of the names is near, else nothing.

    Names that differ only in a number are different things, and not a slip of the hand.
    """
    from difflib import get_close_matches

    letters = _without_digits(text)
    near = get_close_matches(text, [name for name in names if _without_digits(name) != letters], 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _without_digits(name: str) -> str:
    return name.strip("0123456789")


def completed_by(names: Collection[str]) -> Callable[[], list[str]]:
    """What the shell offers for an option that takes one of these names."""
    return lambda: list(names)
