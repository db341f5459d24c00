"""The tables that a query names, found well enough without Spark's parser.

A tokenizer drops comments and literals, and a walk over the rest keeps, for each level of
parentheses, whether it is a query and whether the walk is in its FROM clause. A table is a name of
one part where a relation may stand: after FROM and JOIN, and after a comma in FROM. So
`EXTRACT(YEAR FROM at)` and `a IS DISTINCT FROM b` name none, `range(10)` is a function, and
``parquet.`file` `` or `catalog.db.t` is something that Spark knows by itself. Where in doubt a name
is let pass: Spark will look again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"(?P<space>\s+|--[^\n]*)|(?P<comment>/\*)|(?P<raw>[rR](?:'[^']*'|\"[^\"]*\"))"
    r"|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<quoted>`(?:[^`]|``)*`)|(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<pipe>\|>)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
#: What ends the list of relations of a FROM clause, besides the end of its level.
_FROM_ENDS: Final = frozenset(
    [
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "window",
        "qualify",
        "union",
        "except",
        "minus",
        "intersect",
        "select",
        "cluster",
        "distribute",
        "sort",
        "view",
    ]
)
_QUERY_STARTS: Final = frozenset(["select", "with", "from", "values", "table", "map", "reduce"])
_NO_TABLES: Final = frozenset({"select", "with", "from", "values", "table"})
#: What stands before the query `TABLE name`, besides the beginning of its level.
_BEFORE_TABLE: Final = frozenset({"union", "except", "minus", "intersect", "all", "distinct"})
#: Words that may stand where a relation is expected and are no names.
_BEFORE_RELATION: Final = frozenset({"lateral", "stream", "only"})


class SqlError(ValueError):
    """A sentence about a query, and the offset in its text."""

    def __init__(self, sentence: str, offset: int) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.offset = offset


class TableName(NamedTuple):
    """A name as the query writes it, without quotes, and its offset."""

    name: str
    offset: int


class Tables(NamedTuple):
    """What a query reads, the names that it defines for itself with WITH, and all of its words.

    The latter two are in lower case. A word may be a table in a form that is not known here.
    """

    read: tuple[TableName, ...]
    defined: frozenset[str]
    words: frozenset[str]


class _Token(NamedTuple):
    kind: str
    text: str
    offset: int

    @property
    def keyword(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


@dataclass(slots=True)
class _Level:
    """One pair of parentheses: where it opens, and what the walk knows of it."""

    offset: int
    is_query: bool
    #: The next name is a relation.
    expects_relation: bool = False
    #: A comma starts another relation.
    in_from: bool = False


def table_names(sql: str) -> Tables:
    """The tables of a query; `SqlError` if quotes or parentheses have no end."""
    tokens = _tokens(sql)
    if not tokens:
        raise SqlError("the query is empty.", 0)
    words = (_bare(token).lower() for token in tokens if token.kind in ("word", "quoted"))
    return Tables(tuple(_read(tokens)), frozenset(_defined(tokens)), frozenset(words))


def _read(tokens: list[_Token]) -> list[TableName]:
    found: list[TableName] = []
    end = _Token("end", "", tokens[-1].offset)
    levels = [_Level(0, is_query=True)]
    for position, token in enumerate(tokens):
        level = levels[-1]
        before = tokens[position - 1] if position else end
        after = tokens[position + 1] if position + 1 < len(tokens) else end
        if token.text == "(":
            # A relation in parentheses is a query or more relations, an expression may be a query.
            is_query = after.keyword in _QUERY_STARTS
            as_relation = level.expects_relation and not is_query
            level.expects_relation = False
            levels.append(_Level(token.offset, is_query or as_relation, as_relation, as_relation))
        elif token.text == ")":
            if len(levels) == 1:
                raise SqlError("')' has no '('.", token.offset)
            levels.pop()
        else:
            if level.expects_relation and token.keyword not in _BEFORE_RELATION:
                level.expects_relation = False
                if _is_table(token, after):
                    found.append(TableName(_bare(token), token.offset))
            _follow(level, token, before)
    if len(levels) > 1:
        raise SqlError("'(' has no ')'.", levels[-1].offset)
    return found


def _is_table(token: _Token, after: _Token) -> bool:
    if token.kind not in ("word", "quoted") or after.text in (".", "("):
        return False
    if token.kind == "quoted":
        return True
    return token.keyword not in _NO_TABLES


def _follow(level: _Level, token: _Token, before: _Token) -> None:
    """What a token outside of a name means for its level."""
    if token.keyword == "table" and (
        before.text in ("", "(", ",") or before.keyword in _BEFORE_TABLE
    ):
        # A query by itself, or an argument of a function that takes tables.
        level.expects_relation = True
    elif not level.is_query:
        return
    elif (token.keyword == "from" and before.keyword != "distinct") or token.keyword == "join":
        level.expects_relation = level.in_from = True
    elif token.kind == "pipe" or token.keyword in _FROM_ENDS:
        level.in_from = False
    elif token.text == "," and level.in_from:
        level.expects_relation = True


def _defined(tokens: list[_Token]) -> set[str]:
    """`name AS (` and `name (columns) AS (` with a query behind: the names of WITH."""
    found = set()
    for position in range(len(tokens) - 2):
        first, second, third = tokens[position : position + 3]
        if first.keyword == "as" and second.text == "(" and _starts_query(third):
            name = _name_before(tokens, position)
            if name is not None:
                found.add(_bare(name).lower())
        elif first.keyword in ("with", "recursive") and second.kind in ("word", "quoted"):
            found.add(_bare(second).lower())
    return found - {"recursive"}


def _starts_query(token: _Token) -> bool:
    return token.text == "(" or token.keyword in _QUERY_STARTS


def _name_before(tokens: list[_Token], position: int) -> _Token | None:
    """The name that stands before AS, over a list of columns in parentheses if there is one."""
    position -= 1
    if position >= 0 and tokens[position].text == ")":
        while position >= 0 and tokens[position].text != "(":
            position -= 1
        position -= 1
    if position < 0 or tokens[position].kind not in ("word", "quoted"):
        return None
    return tokens[position]


def _bare(token: _Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text


def _tokens(sql: str) -> list[_Token]:
    found = []
    position = 0
    while position < len(sql):
        match = _TOKEN.match(sql, position)
        kind = match.lastgroup if match is not None else None
        if match is None or kind is None:
            break
        if kind == "comment":
            position = _comment_end(sql, position)
            continue
        if kind == "sign" and match.group() in "'\"`":
            raise SqlError(f"a quote ({match.group()}) has no end.", position)
        if kind != "space":
            found.append(_Token(kind, match.group(), position))
        position = match.end()
    return found


def _comment_end(sql: str, start: int) -> int:
    """Behind the comment that starts there; comments may hold comments."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(sql, start):
        depth += 1 if match.group() == "/*" else -1
        if depth == 0:
            return match.end()
    raise SqlError("a comment has no end.", start)
