"""Hypothesis strategies for records and for everything that a batch says about them."""

from hypothesis import strategies as st

from headwater.wire.records import Compression, Record, TimestampType

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

compressions = st.sampled_from(list(Compression))
timestamp_types = st.sampled_from(list(TimestampType))

#: Mostly times that a clock may show, now and then none, and the ends of what fits.
timestamps = st.one_of(
    st.integers(1_600_000_000_000, 1_600_000_100_000),
    st.just(-1),
    st.sampled_from((0, 2**63 - 1, -(2**63))),
    INT64,
)
#: Lengths around the places where a varint grows, as well as short ones of any content.
nullable_bytes = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.sampled_from((0, 63, 64, 8191, 8192, 8200)).map(lambda length: b"x" * length),
)
headers = st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=20)), max_size=4)


@st.composite
def record_lists(
    draw: st.DrawFn, *, min_size: int = 1, max_size: int = 12, with_headers: bool = True
) -> list[Record]:
    """Records with growing offsets, gaps between them, as compaction leaves them."""
    steps = draw(
        st.lists(
            st.integers(1, 3) | st.integers(60, 9000),
            min_size=min_size,
            max_size=max_size,
        )
    )
    offset = draw(st.integers(0, 10) | st.integers(0, 2**62)) - 1
    records = []
    for step in steps:
        offset += step
        records.append(
            Record(
                offset + 1,
                draw(timestamps),
                draw(nullable_bytes),
                draw(nullable_bytes),
                tuple(draw(headers)) if with_headers else (),
            )
        )
    return records
