import json

from headwater.cli.output.plain_table import Column, Row, TableForm, json_lines, table_lines

COLUMNS = [Column("GROUP", "group", 8), Column("#", "count"), Column("ASSIGNMENT", "assignment")]
ROWS: list[Row] = [
    {"group": "g", "count": 3, "assignment": {"orders": [0, 2], "payments": [1]}, "unshown": 1},
    {"group": "much-longer", "count": None, "assignment": {}, "unshown": 1},
]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert list(table_lines(COLUMNS, ROWS)) == [
        "GROUP       # ASSIGNMENT",
        "g           3 orders:0,2;payments:1",
        "much-longer - -",
    ]
    assert list(table_lines(COLUMNS, [])) == ["GROUP    # ASSIGNMENT"]


def test_the_form_of_another_tool() -> None:
    form = TableForm(separator="\t", missing="None")
    assert list(table_lines(COLUMNS, ROWS, form))[2] == "much-longer\tNone\tNone"


def test_json_keeps_values_as_they_are() -> None:
    first, second = map(json.loads, json_lines(COLUMNS, ROWS))
    assert first == {"group": "g", "count": 3, "assignment": {"orders": [0, 2], "payments": [1]}}
    assert second == {"group": "much-longer", "count": None, "assignment": {}}


def test_names_do_not_steer_the_terminal() -> None:
    rows: list[Row] = [{"group": "g\n\x1b[2J", "count": 1, "assignment": {"\x07": [0]}}]
    assert list(table_lines(COLUMNS, rows))[1] == "g\\n\\x1b[2J 1 \\x07:0"
    [line] = json_lines(COLUMNS, rows)
    assert json.loads(line)["group"] == "g\n\x1b[2J"
    assert line.isprintable()
