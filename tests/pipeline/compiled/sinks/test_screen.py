from headwater.pipeline.compiled.sinks.screen import CELL_WIDTH_MAX, table_text


def test_rows_stand_under_their_headings_numbers_to_the_right() -> None:
    text = table_text(["name", "count"], [("ann", 7), ("bo", 120)], shown=5, row_count=2)
    assert text.splitlines() == [
        "name  count",
        "----  -----",
        "ann       7",
        "bo      120",
    ]


def test_more_rows_than_are_shown_are_only_told_of() -> None:
    rows = [(number,) for number in range(3)]
    lines = table_text(["n"], rows, shown=3, row_count=1_003).splitlines()
    assert lines[2:] == ["0", "1", "2", "... and 1,000 more rows"]


def test_cells_are_short_and_on_one_line() -> None:
    text = table_text(
        ["a", "b"], [("x" * 100, b"\xffok"), (None, "two\nlines")], shown=9, row_count=2
    )
    lines = text.splitlines()
    assert len(lines) == 4
    assert len(lines[0]) <= CELL_WIDTH_MAX + 2 + len("two lines")
    assert "\\xffok" in lines[2]
    assert lines[3].endswith("two lines")
