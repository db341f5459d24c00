"""Writes `client/settings/typed.py`: the settings of clients as type checkers and editors see them.

Run `python -m tools.typed_settings`, which `make docs` does. A key is a setting's keyword, its type
what `client_config` reads for a row of that kind, and the text under it what an editor shows. A
test compares the file with what this writes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from headwater.base.settings import Setting, SettingKind, SettingTable
from headwater.client.settings.admin_settings import ADMIN_ONLY_SETTINGS
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.settings.consumer_settings import CONSUMER_ONLY_SETTINGS
from headwater.client.settings.producer_settings import PRODUCER_ONLY_SETTINGS
from headwater.client.settings.trace_settings import TRACE_SETTINGS
from headwater.client.spool.settings import SPOOL_SETTINGS

MODULE: Final = Path(__file__).parents[1] / "src" / "headwater" / "client" / "settings" / "typed.py"

HEADING: Final = '''"""The settings of clients as keywords, with their types.

For `Producer(**settings)`, where an editor completes them and a type checker refuses others, and
for dictionaries of them. Text is read as in a properties file, and None leaves the default. Written
by tools/typed_settings.py from the tables beside it, so not to be edited.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict

from headwater.client.assignors.assignor import AssignorLike
'''


class _Class(NamedTuple):
    name: str
    base: str
    doc: str
    tables: tuple[SettingTable, ...]


_COMMON: Final = "ClientSettings"
_CLASSES: Final = (
    _Class(_COMMON, "TypedDict", "Every client has these.", (COMMON_SETTINGS,)),
    _Class(
        "ProducerSettings",
        _COMMON,
        "For `Producer` and `AsyncProducer`.",
        (PRODUCER_ONLY_SETTINGS, SPOOL_SETTINGS, TRACE_SETTINGS),
    ),
    _Class(
        "ConsumerSettings",
        _COMMON,
        "For `Consumer` and `AsyncConsumer`.",
        (CONSUMER_ONLY_SETTINGS, TRACE_SETTINGS),
    ),
    _Class("AdminSettings", _COMMON, "For `Admin` and `AsyncAdmin`.", (ADMIN_ONLY_SETTINGS,)),
)

#: The keyword of each is a parameter of the constructor's own, which takes an object.
_PARAMETERS: Final = frozenset(
    {"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"}
)
#: More than its row says: the consumer makes assignors of the entries before they are read.
_TYPES: Final = {"partition.assignment.strategy": "AssignorLike | Sequence[AssignorLike]"}

_KIND_TYPES: Final = {
    SettingKind.BOOLEAN: "bool | str",
    SettingKind.STRING: "str",
    SettingKind.INT: "int | str",
    SettingKind.LONG: "int | str",
    SettingKind.DOUBLE: "float | str",
    SettingKind.LIST: "str | Sequence[str]",
    SettingKind.CLASS: "str",
}
_TIME_TYPE: Final = "int | timedelta | str"

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]+")
_LINE_LENGTH: Final = 100
_INDENT: Final = "    "


def typed_settings_module() -> str:
    """The whole module."""
    return "\n\n".join((HEADING, *("\n".join(_lines(shown)) for shown in _CLASSES)))


def _lines(shown: _Class) -> Iterator[str]:
    yield f"class {shown.name}({shown.base}, total=False):"
    yield f'{_INDENT}"""{shown.doc}"""'
    for row in (row for table in shown.tables for row in table):
        if row.name not in _PARAMETERS:
            yield ""
            yield f"{_INDENT}{row.name.replace('.', '_')}: {_type(row)} | None"
            yield from _docstring(row)
    yield ""


def _type(row: Setting) -> str:
    """What may be written for it; a choice that is a number also as one."""
    if row.choices:
        texts = [f'"{choice}"' for choice in row.choices]
        numbers = [choice for choice in row.choices if _WHOLE_NUMBER.fullmatch(choice)]
        return f"Literal[{', '.join(texts + numbers)}]"
    if row.name.endswith(".ms"):
        return _TIME_TYPE
    return _TYPES.get(row.name) or _KIND_TYPES[row.kind]


def _docstring(row: Setting) -> list[str]:
    default = row.render(row.default)
    text = row.doc + (f" Default: {default}." if default else "")
    if row.without_effect:
        text += f" Without effect: {row.without_effect}"
    quotes = '"""'
    lines = textwrap.wrap(
        quotes + text,
        _LINE_LENGTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )
    if len(lines) == 1 and len(lines[0] + quotes) <= _LINE_LENGTH:
        return [lines[0] + quotes]
    return [*lines, _INDENT + quotes]


if __name__ == "__main__":
    MODULE.write_text(typed_settings_module())
