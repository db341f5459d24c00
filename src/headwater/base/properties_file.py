r"""Reading the properties files that Kafka's own tools read and write.

The format is Java's: one setting a line, name and value parted by `=`, `:` or space; lines that
begin with `#` or `!` are comments; a line that ends in an odd number of backslashes goes on in the
next, whose leading space does not count; `\t \n \r \f \uXXXX` are escapes, and a backslash before
anything else only takes away its meaning. Where a name comes twice, the last one counts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from headwater.base.setting import SettingError

_SPACE = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_TRAILING_BACKSLASHES = re.compile(r"\\*\Z")
_NAME = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|\Z)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    line: int
    name: str
    value: str


def read_properties_file(text: str, source: str = "the properties file") -> dict[str, str]:
    """The names and values in `text`; raises `SettingError` naming the line that is wrong."""
    properties: dict[str, str] = {}
    for found in properties_in(text, source):
        if isinstance(found, SettingError):
            raise found
        properties[found.name] = found.value
    return properties


def properties_in(text: str, source: str) -> Iterator[Property | SettingError]:
    """Each line that sets something, or what is wrong with it."""
    for number, line in _logical_lines(text):
        name = _NAME.match(line)
        separator = _SEPARATOR.match(line, name.end() if name else 0)
        if name is None or separator is None or name.end() == 0:
            yield SettingError(f"Line {number} of {source} has a value without a name.")
            continue
        try:
            yield Property(number, _unescape(name[0]), _unescape(line[separator.end() :]))
        except ValueError:
            yield SettingError(
                f"Line {number} of {source} has a \\u escape that is not a character: it needs "
                "four hexadecimal digits."
            )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, without comments, and the number of their first."""
    started_at = 0
    parts: list[str] = []
    for number, natural in enumerate(_LINE_END.split(text), start=1):
        line = natural.lstrip(_SPACE)
        if not parts:
            if not line or line[0] in "#!":
                continue
            started_at = number
        backslashes = _TRAILING_BACKSLASHES.search(line)
        continues = backslashes is not None and len(backslashes[0]) % 2 == 1
        parts.append(line[:-1] if continues else line)
        if not continues:
            yield started_at, "".join(parts)
            parts.clear()
    if parts:
        yield started_at, "".join(parts)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_replacement, text)
    # Java writes a character outside the basic plane as two escapes, which belong together.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _replacement(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1], 16))
    if match[2] == "u":
        raise ValueError("a unicode escape without four hexadecimal digits")
    return _ESCAPED.get(match[2], match[2]) if match[2] else ""
