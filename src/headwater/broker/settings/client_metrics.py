"""Whether a subscription to the metrics of clients can say something, and which clients it means.

The error codes are Kafka's. Patterns are regular expressions as Java has them, but run on an engine
that none of them can keep busy: what that does not have (looking ahead or behind, going back to a
group) is refused when it is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.broker.settings.rows.client_metrics import CLIENT_METRICS_SETTINGS

#: What a pattern may look at.
MATCHED: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_PATTERN_BYTES_MAX: Final = 1 << 20
#: A character that is escaped, an end of a class of characters, or one of Java's names of classes.
_TOKEN: Final = re.compile(r"\\[pP]\{(\w+)\}|\\.|[\[\]]", re.DOTALL)
#: Java's names of classes of characters, as RE2 calls them.
_JAVA_CLASSES: Final = {
    "Alnum": "alnum",
    "Alpha": "alpha",
    "ASCII": "ascii",
    "Blank": "blank",
    "Cntrl": "cntrl",
    "Digit": "digit",
    "Graph": "graph",
    "Lower": "lower",
    "Print": "print",
    "Punct": "punct",
    "Space": "space",
    "Upper": "upper",
    "XDigit": "xdigit",
}

#: Whether a text as a whole matches.
Matches = Callable[[str], bool]


def check_client_metrics_name(name: str) -> None:
    """Whether there is such a setting; raises `KafkaError`."""
    if name not in CLIENT_METRICS_SETTINGS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Client metrics have no setting {name!r}.")


def check_client_metrics_setting(name: str, text: str) -> None:
    """Whether a subscription can be given this; raises `KafkaError`."""
    check_client_metrics_name(name)
    row = CLIENT_METRICS_SETTINGS[name]
    try:
        row.parse(text)
    except SettingError as error:
        if text.strip().removeprefix("-").isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
        raise
    if name == "match" and text.strip():
        read_patterns(text.split(","))


def read_patterns(patterns: Sequence[str]) -> list[tuple[str, Matches]]:
    """What each pattern looks at, and whether it likes what it sees; raises `SettingError`."""
    return [_read_pattern(pattern.strip()) for pattern in patterns]


def _read_pattern(pattern: str) -> tuple[str, Matches]:
    what, _, expression = (part.strip() for part in pattern.partition("="))
    if what not in MATCHED or not expression or "=" in expression:
        raise SettingError(
            f"The pattern {pattern!r} matches no clients: it must be one of "
            f"{', '.join(sorted(MATCHED))}, then = and a regular expression."
        )
    # Nearly no broker needs it, and importing it takes a fortieth of a second.
    import re2

    options = re2.Options()
    options.max_mem = _PATTERN_BYTES_MAX
    options.log_errors = False
    try:
        compiled = re2.compile(_as_re2(expression), options=options)
    except re2.error:
        raise SettingError(
            f"The pattern {pattern!r} has no regular expression, or one of a kind that is not "
            "taken here."
        ) from None
    return what, lambda text: compiled.fullmatch(text) is not None


def _as_re2(expression: str) -> str:
    """The expression with RE2's names of classes for Java's."""
    depth = 0

    def replaced(token: re.Match[str]) -> str:
        nonlocal depth
        if token[0] == "[":
            depth += 1
        elif token[0] == "]":
            depth = max(0, depth - 1)
        elif token[1] in _JAVA_CLASSES:
            is_negated = token[0].startswith("\\P")
            name = f"[:{'^' * is_negated}{_JAVA_CLASSES[token[1]]}:]"
            return name if depth else f"[{name}]"
        return token[0]

    return _TOKEN.sub(replaced, expression)
