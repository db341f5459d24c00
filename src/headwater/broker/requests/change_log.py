"""Tells the log which client changed what: topics, settings, groups.

The broker that a client asks writes the line, because it alone knows who asks; the controller,
which may be another broker, writes what it decides by itself. A request is one line, however much
it changes, and one that changes nothing is none. What goes on when its time is over is told as
well, since nobody else tells it then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headwater.base.errors import ErrorCode
from headwater.base.printable import listed

if TYPE_CHECKING:
    from headwater.broker.context import RequestContext

_logger = logging.getLogger(__name__)


def log_deeds(context: RequestContext, deeds: Iterable[str]) -> None:
    """Write what came of a request, in words that may follow "the client"."""
    told = "; ".join(each for each in deeds if each)
    if told:
        _logger.info("%s %s.", context.asker, told)


def deed(verb: str, noun: str, names: Sequence[str]) -> str:
    """`created the topic a`, `deleted the groups a, b and 8 more`; nothing without a name."""
    if not names:
        return ""
    return f"{verb} the {noun}{'s' if len(names) > 1 else ''} {listed(names)}"


def unfinished(noun: str, outcomes: Iterable[tuple[str, int]]) -> str:
    """Of names with error codes, those that took too long and may be done yet."""
    late = [name for name, code in outcomes if code == ErrorCode.REQUEST_TIMED_OUT]
    return deed("went away before this was done:", noun, late)
