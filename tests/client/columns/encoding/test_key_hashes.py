import random

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from headwater.client.columns.encoding.key_hashes import murmur2_of_fields, partitions_of
from headwater.client.partitioner import murmur2, partition_for_key


@given(st.lists(st.binary(max_size=20) | st.binary(min_size=500, max_size=530), max_size=60))
def test_hashes_what_the_plain_hash_does(keys: list[bytes]) -> None:
    assert _hashes(keys).tolist() == [murmur2(key) for key in keys]


def test_ten_thousand_random_keys_go_where_single_keys_go() -> None:
    generator = random.Random(5)
    keys = [generator.randbytes(generator.randrange(0, 40)) for _ in range(10_000)]
    wanted = [partition_for_key(key, 17) for key in keys]
    assert partitions_of(_hashes(keys), 17).tolist() == wanted


def _hashes(keys: list[bytes]) -> npt.NDArray[np.uint32]:
    data = np.frombuffer(b"".join(keys), np.uint8)
    sizes = np.array([len(key) for key in keys], np.int64)
    return murmur2_of_fields(data, np.cumsum(sizes) - sizes, sizes)
