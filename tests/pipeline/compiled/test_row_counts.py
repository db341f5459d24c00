from headwater.pipeline.compiled.row_counts import WrittenRows


def test_rows_are_known_by_query_and_batch_for_a_while() -> None:
    written = WrittenRows()
    for batch_id in range(500):
        written.add("a", batch_id, batch_id + 1)
    written.add("b", 499, 7)
    assert [written.of("a", number) for number in (0, 400, 499)] == [0, 401, 500]
    assert (written.of("b", 499), written.of("c", 499)) == (7, 0)
