"""Schemas in Spark's DDL, read without Spark: their columns, or a sentence about what is wrong.

`id STRING NOT NULL, items ARRAY<STRUCT<sku: STRING, price: DECIMAL(10, 2)>>`. It knows the names of
all types, and passes over the parts that a type may have in parentheses or words behind it, so that
what Spark would take is never refused here; what passes here Spark may refuse still.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from headwater.pipeline.declared.problems import suggestion

_TYPES: Final = [
    "boolean",
    "tinyint",
    "byte",
    "smallint",
    "short",
    "int",
    "integer",
    "bigint",
    "long",
    "float",
    "real",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamp_ntz",
    "timestamp_ltz",
    "string",
    "character",
    "char",
    "varchar",
    "binary",
    "decimal",
    "dec",
    "numeric",
    "void",
    "interval",
    "variant",
    "geometry",
    "geography",
    "array",
    "map",
    "struct",
]
_TOKEN: Final = re.compile(
    r"\s+|(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>[^\s`'\",:<>()]+)|(?P<sign>[,:<>()])",
    re.DOTALL,
)
_NESTING_MAX: Final = 50


class SchemaError(ValueError):
    """A sentence about a schema, and the offset in its text where the trouble is."""

    def __init__(self, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.offset = offset


class Column(NamedTuple):
    """A top-level column and the name of its type in capitals."""

    name: str
    type: str


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int


_END: Final = "end"


def parse_ddl(text: str) -> tuple[Column, ...]:
    """The columns of a schema; `SchemaError` if it is none."""
    reader = _Reader(text)
    columns = reader.columns(closing="", depth=0)
    names: set[str] = set()
    for column, offset in columns:
        if column.name.lower() in names:
            raise SchemaError(f"column {column.name!r} is in the schema twice.", offset)
        names.add(column.name.lower())
    return tuple(column for column, _ in columns)


class _Reader:
    """A walk over the tokens, one step of grammar a method."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._next = 0

    def columns(self, closing: str, depth: int) -> list[tuple[Column, int]]:
        """Names with their types, up to the end of the text or the sign that closes a struct."""
        found: list[tuple[Column, int]] = []
        while True:
            name = self._take()
            if name.kind not in ("word", "quoted"):
                raise SchemaError(f"a column's name is expected{_instead(name)}.", name.offset)
            if self._peek().text == ":":
                self._take()
            type_name = self._type(name, depth)
            bare = name.text[1:-1].replace("``", "`") if name.kind == "quoted" else name.text
            found.append((Column(bare, type_name), name.offset))
            self._constraints()
            end = self._take()
            if end.text == closing or (not closing and end.kind == _END):
                return found
            if end.text != ",":
                missing = f"a comma or '{closing}'" if closing else "a comma"
                raise SchemaError(
                    f"{missing} is expected after column {bare!r}{_instead(end)}.", end.offset
                )

    def _type(self, owner: _Token, depth: int) -> str:
        token = self._take()
        if token.kind != "word":
            raise SchemaError(
                f"{owner.text!r} has no type; write it like '{owner.text} STRING'.", owner.offset
            )
        if depth > _NESTING_MAX:
            raise SchemaError("the types are nested too deeply.", token.offset)
        name = token.text.lower()
        if name not in _TYPES:
            upper = [known.upper() for known in _TYPES]
            advice = suggestion(name, upper)
            raise SchemaError(f"{token.text!r} is not a type{advice}", token.offset)
        if name in ("array", "map", "struct"):
            self._inner(token, depth)
        elif self._peek().text == "(":
            self._parentheses()
        while self._peek().text.lower() in _CONTINUATIONS:
            # Units of an interval, a collation, a zone: Spark knows which go with which type.
            if self._take().text.lower() == "collate":
                self._take()
        return name.upper()

    def _inner(self, token: _Token, depth: int) -> None:
        name = token.text.lower()
        if (opening := self._take()).text != "<":
            raise SchemaError(
                f"{token.text} needs its inner types, such as {_EXAMPLES[name]}.", opening.offset
            )
        if name == "struct":
            if self._peek().text == ">":
                self._take()
            else:
                self.columns(closing=">", depth=depth + 1)
            return
        self._type(token, depth + 1)
        if name == "map":
            if (comma := self._take()).text != ",":
                raise SchemaError(
                    f"a map needs two types, such as {_EXAMPLES['map']}.", comma.offset
                )
            self._type(token, depth + 1)
        if (closing := self._take()).text != ">":
            raise SchemaError(f"'>' is expected here{_instead(closing)}.", closing.offset)

    def _parentheses(self) -> None:
        opening = self._take()
        while (token := self._take()).text != ")":
            if token.kind == _END:
                raise SchemaError("'(' has no ')'.", opening.offset)

    def _constraints(self) -> None:
        """NOT NULL, COMMENT, DEFAULT and whatever else may stand behind a type."""
        while self._peek().text.lower() in _CONSTRAINTS:
            word = self._take().text.lower()
            if word == "comment" and self._peek().kind == "text":
                self._take()
            while word in ("default", "generated") and self._peek().kind in ("word", "text"):
                self._take()
                if self._peek().text == "(":
                    self._parentheses()

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


_CONTINUATIONS: Final = frozenset(
    [
        "collate",
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "to",
        "with",
        "without",
        "local",
        "time",
        "zone",
    ]
)
_CONSTRAINTS: Final = ("not", "null", "comment", "default", "generated")
_EXAMPLES: Final = {
    "array": "ARRAY<STRING>",
    "map": "MAP<STRING, INT>",
    "struct": "STRUCT<id: INT>",
}


def _tokens(text: str) -> list[_Token]:
    found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SchemaError(f"{text[position]!r} has no end.", position)
        if match.lastgroup is not None:
            found.append(_Token(match.lastgroup, match.group(), position))
        position = match.end()
    return [*found, _Token(_END, "", len(text.rstrip()))]


def _instead(token: _Token) -> str:
    return ", but the schema ends" if token.kind == _END else f", not {token.text!r}"
