"""Generations of a map against copies of a dict."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.image.layered_map import LayeredMap

_changes = st.dictionaries(st.integers(0, 300), st.one_of(st.none(), st.integers()), max_size=20)


@given(st.dictionaries(st.integers(0, 300), st.integers()), st.lists(_changes, max_size=25))
def test_every_generation_stays_what_it_was(
    start: dict[int, int], steps: list[dict[int, int | None]]
) -> None:
    generations = [(LayeredMap(start), dict(start))]
    for changes in steps:
        current, expected = generations[-1]
        expected = dict(expected)
        for key, value in changes.items():
            if value is None:
                expected.pop(key, None)
            else:
                expected[key] = value
        generations.append((current.changed(changes), expected))
    for layered, expected in generations:
        assert dict(layered) == expected
        assert len(layered) == len(expected)
        assert sorted(layered) == sorted(expected)
        for key in range(301):
            assert (key in layered) == (key in expected)
            assert layered.get(key, "nothing") == expected.get(key, "nothing")


def test_the_order_is_that_of_a_dict() -> None:
    layered = LayeredMap({"b": 1, "a": 2, "c": 3})
    layered = layered.changed({"a": 4}).changed({"z": 5, "y": 6}).changed({"b": None})
    assert list(layered.items()) == [("a", 4), ("c", 3), ("z", 5), ("y", 6)]


def test_a_change_copies_little_of_a_large_map() -> None:
    layered = LayeredMap({number: number for number in range(10_000)})
    copied = 0
    for number in range(1_000):
        before = layered
        layered = layered.changed({number: -number, 10_000 + number: number})
        copied += layered._base is not before._base
    assert 0 < copied <= 30
    assert len(layered) == 11_000 and layered[999] == -999 and layered[5_000] == 5_000
