"""The tables of a query are found, and what is none is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.declared.sections.sql_names import SqlError, table_names

QUERIES = {
    "SELECT * FROM orders": ["orders"],
    "select o.id from Orders o, payments AS p where o.id = p.id": ["Orders", "payments"],
    "SELECT * FROM a JOIN b USING (id) LEFT OUTER JOIN c ON a.x = c.x": ["a", "b", "c"],
    "SELECT * FROM a CROSS JOIN LATERAL (SELECT * FROM b)": ["a", "b"],
    "SELECT * FROM (SELECT x, y FROM inner_one) t, outer_one": ["inner_one", "outer_one"],
    "SELECT * FROM ((a JOIN b ON a.x = b.x) JOIN c ON true)": ["a", "b", "c"],
    "SELECT x FROM t WHERE y IN (SELECT y FROM u) AND EXISTS (SELECT 1 FROM v)": ["t", "u", "v"],
    "SELECT extract(year FROM at), trim(BOTH 'x' FROM y), substring(z FROM 2) FROM t": ["t"],
    "SELECT a IS NOT DISTINCT FROM b, c IS DISTINCT FROM d FROM t": ["t"],
    "SELECT 'FROM nothing', \"FROM nothing\" -- FROM nothing\nFROM t /* FROM a /* b */ */": ["t"],
    "SELECT k, v FROM t LATERAL VIEW explode(m) x AS k, v": ["t"],
    "SELECT * FROM range(10), VALUES (1, 2) AS x(a, b), t": ["t"],
    "SELECT * FROM parquet.`file` JOIN catalog.db.t ON true JOIN `my table` ON true": ["my table"],
    "SELECT * FROM a UNION ALL SELECT * FROM b EXCEPT TABLE c": ["a", "b", "c"],
    "FROM orders |> WHERE x > 1 |> SELECT y, z |> JOIN w ON true": ["orders", "w"],
    "SELECT count(*) FROM t GROUP BY window(at, '5 minutes'), k ORDER BY a, b": ["t"],
    "SELECT * FROM t TABLESAMPLE (10 ROWS), u": ["t", "u"],
    "SELECT x FROM t WINDOW w AS (PARTITION BY a, b ORDER BY c)": ["t"],
    "SELECT from_json(x, 's'), `from` FROM t": ["t"],
    "SELECT r'a\\', b FROM t": ["t"],
    "TABLE foo": ["foo"],
    "SELECT * FROM view JOIN map ON true, sort": ["view", "map", "sort"],
    "SELECT * FROM f(TABLE a, TABLE(b), x => 1) t JOIN g(c)": ["a", "b"],
    "SELECT * FROM t PIVOT (sum(a) FOR b IN ('x', 'y')), u": ["t", "u"],
    "SELECT x.table, y.from FROM t": ["t"],
    "SELECT 1": [],
    "SELECT array(SELECT max(x) FROM s), (SELECT 1) FROM t": ["s", "t"],
}


@pytest.mark.parametrize("sql", QUERIES)
def test_tables_of_a_query(sql: str) -> None:
    tables = table_names(sql)
    assert [table.name for table in tables.read] == QUERIES[sql]
    assert all(table.name in sql[table.offset :] for table in tables.read)


def test_names_of_with_are_the_querys_own() -> None:
    tables = table_names(
        "WITH big AS (SELECT * FROM orders), sums(a, b) AS (SELECT 1, 2 FROM big) "
        "SELECT * FROM sums JOIN big"
    )
    assert [table.name for table in tables.read] == ["orders", "big", "sums", "big"]
    assert tables.defined >= {"big", "sums"}
    assert "orders" not in tables.defined


@pytest.mark.parametrize(
    ("sql", "offset", "sentence"),
    [
        ("SELECT (1", 7, "'(' has no ')'."),
        ("SELECT 1)", 8, "')' has no '('."),
        ("SELECT 'a", 7, "a quote (') has no end."),
        ("SELECT /* x", 7, "a comment has no end."),
        (" -- nothing", 0, "the query is empty."),
    ],
)
def test_what_has_no_end_is_told_with_its_place(sql: str, offset: int, sentence: str) -> None:
    with pytest.raises(SqlError) as error:
        table_names(sql)
    assert (error.value.offset, error.value.sentence) == (offset, sentence)


WORDS = st.sampled_from(
    [
        *"(),tu.*'`\"x",
        "SELECT",
        "FROM",
        "JOIN",
        "WITH",
        "AS",
        "DISTINCT",
        "TABLE",
        "VALUES",
        "|>",
        "--",
        "/*",
        "*/",
    ]
)


@given(st.lists(WORDS, max_size=25).map(" ".join))
def test_any_words_give_names_or_a_sentence(sql: str) -> None:
    try:
        tables = table_names(sql)
    except SqlError as error:
        assert 0 <= error.offset <= len(sql)
    else:
        assert all(table.name in sql for table in tables.read)


NAMES = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4, unique=True)


@given(NAMES, st.booleans(), st.booleans())
def test_every_table_of_a_made_query_is_found(
    names: list[str], with_commas: bool, in_subquery: bool
) -> None:
    relations = (", " if with_commas else " JOIN ").join(names)
    sql = f"SELECT x, y FROM {relations} WHERE x = 1"
    if in_subquery:
        sql = f"SELECT * FROM ({sql}) z WHERE y IN (SELECT 1)"
    assert [table.name for table in table_names(sql).read] == names
