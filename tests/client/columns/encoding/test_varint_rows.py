from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.columns.encoding.varint_rows import Varints, write_rows
from headwater.wire.records.varint import encode_varlong
from tests.support.values.record_strategies import INT64

numbers = INT64 | st.integers(-70, 70) | st.integers(-9000, 9000)


@given(st.lists(st.tuples(numbers, numbers, st.integers(0, 63)), max_size=30))
def test_writes_what_the_plain_writer_writes(rows: list[tuple[int, int, int]]) -> None:
    columns = [Varints.of(np.array([row[index] for row in rows], np.int64)) for index in range(3)]
    data, bounds = write_rows([columns[0], 9, columns[1], columns[2]], len(rows))
    assert [data[start:end].tobytes() for start, end in pairwise(bounds)] == [
        encode_varlong(one) + b"\x09" + encode_varlong(two) + encode_varlong(three)
        for one, two, three in rows
    ]
