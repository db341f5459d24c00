"""One setting: its row, and how its value is read from text and written back.

A row says everything there is to know about a setting, and all else is derived from it: checks,
the generated documentation, and what DescribeConfigs answers. Values have Kafka's types, and text
is read the way Kafka reads it: surrounding space does not count, commas separate the items of a
list.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from headwater.base.checks import check
from headwater.base.errors import InvalidConfigError

SettingValue = bool | int | float | str | tuple[str, ...] | None


class SettingError(InvalidConfigError):
    """A setting is unknown, or its value is not allowed; the message is for its author."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong, one fault each."""
        return (str(self),)


class SettingFaults(SettingError):
    """Several things are wrong with a configuration, and all are told at once."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__(" ".join(sentences))
        self._sentences = tuple(sentences)

    def __reduce__(self) -> tuple[type["SettingFaults"], tuple[tuple[str, ...]]]:
        return SettingFaults, (self._sentences,)

    @property
    def sentences(self) -> tuple[str, ...]:
        return self._sentences


def refuse(sentences: Sequence[str]) -> None:
    """Raise `SettingError` for these faults, if there are any."""
    if len(sentences) > 1:
        raise SettingFaults(sentences)
    for sentence in sentences:
        raise SettingError(sentence)


class SettingKind(IntEnum):
    """The type of a setting; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class DynamicScope(Enum):
    """Whether a running broker takes a new value, and for whom, in the words of Kafka's docs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


@dataclass(frozen=True, slots=True)
class Synonym:
    """A setting that gives the value where the one that names it has none, times `multiplier`.

    The multiplier turns units: `log.retention.hours` stands in for `log.retention.ms`.
    """

    name: str
    multiplier: int = 1

    def value_from(self, value: SettingValue) -> SettingValue:
        """What a value of the synonym means; a negative number means "none" in any unit."""
        if self.multiplier == 1 or not isinstance(value, int) or value < 0:
            return value
        return value * self.multiplier


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_WHOLE_NUMBER_BITS = {SettingKind.SHORT: 16, SettingKind.INT: 32, SettingKind.LONG: 64}
# Longer digits than any bound has are refused before Python spends time on converting them.
_DIGITS_MAX = 40
_SHOWN_LENGTH_MAX = 100


@dataclass(frozen=True, slots=True)
class Setting:
    """A row. A default of None makes the setting optional.

    `topic_name` is what a topic calls the same setting when it overrides it. `synonyms` are asked
    in order where this setting has no value itself. A setting that is read and checked but changes
    nothing says why in `without_effect`, a sentence.
    """

    name: str
    kind: SettingKind
    default: SettingValue
    doc: str
    lower: float | None = None
    upper: float | None = None
    choices: tuple[str, ...] = ()
    dynamic: DynamicScope = DynamicScope.READ_ONLY
    topic_name: str | None = None
    synonyms: tuple[Synonym, ...] = ()
    without_effect: str = ""

    def __post_init__(self) -> None:
        check(self.name and self.name == self.name.strip(), "%r cannot name a setting", self.name)
        check(self.doc, "the setting %s has no doc", self.name)
        if self.default is not None:
            right = isinstance(self.default, self._python_type()) and (
                isinstance(self.default, bool) == (self.kind is SettingKind.BOOLEAN)
            )
            check(right, "the default of %s is no %s", self.name, self.kind.name)
            fits = self._fits(self.default)
            check(fits, "the default of %s must be %s", self.name, self.allowed())

    def parse(self, text: str, source: str = "") -> SettingValue:
        """The value that `text` stands for; raises `SettingError`."""
        text = text.strip()
        value = self._convert(text)
        if value is None or not self._fits(value):
            shown = "that" if self.kind is SettingKind.PASSWORD else _shortened(text)
            raise SettingError(
                f"The setting {self.name}{f' in {source}' if source else ''} cannot be {shown}: "
                f"it must be {self.allowed()}."
            )
        return value

    def render(self, value: SettingValue, *, reveal: bool = False) -> str | None:
        """The text of a value, which `parse` reads back; passwords are hidden unless revealed."""
        if value is None:
            return None
        if self.kind is SettingKind.PASSWORD and not reveal:
            return "[hidden]"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)

    def allowed(self) -> str:
        """What the value may be, as the end of a sentence."""
        match self.kind:
            case SettingKind.BOOLEAN:
                return "true or false"
            case SettingKind.LIST if self.choices:
                return f"a comma-separated list of {_alternatives(self.choices)}"
            case SettingKind.LIST:
                return "a comma-separated list"
            case _ if self.choices:
                return _alternatives(self.choices)
            case SettingKind.SHORT | SettingKind.INT | SettingKind.LONG | SettingKind.DOUBLE:
                noun = "number" if self.kind is SettingKind.DOUBLE else "whole number"
                return f"a {noun}{self._range()}"
            case SettingKind.CLASS:
                return "the name of a class"
            case _:
                return "text"

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number allowed, by the row and by the width of its type."""
        bits = _WHOLE_NUMBER_BITS.get(self.kind)
        lower: float = -math.inf if bits is None else -(2 ** (bits - 1))
        upper: float = math.inf if bits is None else 2 ** (bits - 1) - 1
        return (
            lower if self.lower is None else max(lower, self.lower),
            upper if self.upper is None else min(upper, self.upper),
        )

    def _range(self) -> str:
        lower, upper = self.bounds()
        # The width of a LONG or DOUBLE says nothing to a reader; that of an INT or SHORT does.
        wide = self.kind in (SettingKind.LONG, SettingKind.DOUBLE)
        if wide and self.upper is None:
            return "" if self.lower is None else f" of at least {lower}"
        if wide and self.lower is None:
            return f" of at most {upper}"
        return f" from {lower} to {upper}"

    def _python_type(self) -> type:
        match self.kind:
            case SettingKind.BOOLEAN:
                return bool
            case SettingKind.SHORT | SettingKind.INT | SettingKind.LONG:
                return int
            case SettingKind.DOUBLE:
                return float
            case SettingKind.LIST:
                return tuple
            case _:
                return str

    def _convert(self, text: str) -> SettingValue:
        match self.kind:
            case SettingKind.BOOLEAN:
                return {"true": True, "false": False}.get(text.lower())
            case SettingKind.SHORT | SettingKind.INT | SettingKind.LONG:
                whole = _WHOLE_NUMBER.fullmatch(text) and len(text) <= _DIGITS_MAX
                return int(text) if whole else None
            case SettingKind.DOUBLE:
                return float(text) if _DECIMAL_NUMBER.fullmatch(text) else None
            case SettingKind.LIST:
                return tuple(item.strip() for item in text.split(",")) if text else ()
            case _:
                return text

    def _fits(self, value: SettingValue) -> bool:
        if isinstance(value, bool):
            return True
        if isinstance(value, int | float):
            lower, upper = self.bounds()
            return math.isfinite(value) and lower <= value <= upper
        items = value if isinstance(value, tuple) else (value,)
        return not self.choices or all(item in self.choices for item in items)


def _shortened(text: str) -> str:
    """A text that somebody typed, as much of it as a sentence can bear."""
    return repr(text) if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]!r}..."


def _alternatives(choices: tuple[str, ...]) -> str:
    return " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
