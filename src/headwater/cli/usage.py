"""Command lines that make no sense, told in one sentence, with what was meant if that is near.

Typer's own errors are fragments in a box that is wrapped to the terminal. A sentence on one line
can be read, searched for and logged, and looks like every other failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

import typer

from headwater.base.printable import printable

#: What all errors about a command line are; typer has no public name for it.
USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__mro__[1])

_NO_NUMBER: Final = re.compile(r"('.*') is not a valid (?:int|integer|float)(?: range)?\.?")
_BELOW: Final = re.compile(r"(\S+) is not in the range x>=(\S+?)\.?")
_OUTSIDE: Final = re.compile(r"(\S+) is not in the range (\S+)<=x<=(\S+?)\.?")
_ADVICE: Final = re.compile(r"(?:name|say|choose|give|only|one)\b")
_TOO_MANY: Final = re.compile(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)")


def tells_usage_itself(mistake: Exception) -> bool:
    """Whether it is no mistake: a command without arguments has printed its help."""
    return type(mistake).__name__ == "NoArgsIsHelpError"


def usage_sentence(mistake: Exception, actions: Sequence[str] = ()) -> str:
    """What is wrong, in a sentence; `actions` are those of the subcommand, which may be flags."""
    told: Any = mistake
    if type(mistake).__name__ == "NoSuchOption":
        text = _no_such_option(told, actions)
    elif isinstance(mistake, typer.BadParameter) and told.message:
        text = _about(_hint(told), _in_words(told.message))
    else:
        text = _in_words(told.format_message())
    return printable(text if text.endswith((".", "?", "!")) else f"{text}.")


def help_hint(mistake: Exception) -> str:
    """Where to read what would make sense."""
    context: Any = getattr(mistake, "ctx", None)
    path = "headwater" if context is None else context.command_path
    return f"Try '{path} --help'."


def _no_such_option(told: Any, actions: Sequence[str]) -> str:
    if actions and told.ctx is not None and told.ctx.parent is not None:
        # The context of an action is below that of its subcommand, which is below the root's.
        if told.ctx.parent.parent is None:
            *others, last = actions
            return f"Say what to do: {', '.join(others)} or {last}"
        if told.option_name.removeprefix("--") in actions:
            return f"{told.ctx.info_name} and {told.option_name} are two actions: name one"
    sentence = f"There is no option {told.option_name!r}"
    if not told.possibilities:
        return sentence
    return f"{sentence}; did you mean {' or '.join(map(repr, told.possibilities))}?"


def _hint(told: Any) -> str:
    """The option as it is best known, or the options that the message is about."""
    if told.param_hint is not None:
        return str(told.param_hint)
    if told.param is None:
        return ""
    names = [name for name in told.param.opts if name.startswith("--")]
    return str(names[0] if names else told.param.human_readable_name)


def _about(hint: str, message: str) -> str:
    """A message with what it is about: behind it if it tells what to do, else in front."""
    if not hint:
        return message
    if _ADVICE.match(message):
        return f"{message[0].upper()}{message[1:].rstrip('.')} ({hint})"
    return f"{hint}: {message}"


def _in_words(message: str) -> str:
    if match := _NO_NUMBER.fullmatch(message):
        return f"{match[1]} is not a number"
    if match := _BELOW.fullmatch(message):
        return f"{match[1]} is less than {match[2]}"
    if match := _OUTSIDE.fullmatch(message):
        return f"{match[1]} is not between {match[2]} and {match[3]}"
    if match := _TOO_MANY.fullmatch(message):
        return f"{match[1]!r} is more than this command takes"
    return message.replace("No such command", "There is no command").replace(". Did", "; did")
