import pytest

from headwater.base.checks import InvariantError
from headwater.base.randomness import SeededRandom


def _draws(source: SeededRandom) -> list[int]:
    return [source.generator.randrange(1_000_000) for _ in range(20)]


def test_a_seed_decides_everything() -> None:
    first, second = SeededRandom(7), SeededRandom(7)
    assert _draws(first.child("disk")) == _draws(second.child("disk"))
    assert first.uuid() == second.uuid()
    assert first.uuid() != SeededRandom(8).uuid()


def test_a_child_does_not_depend_on_what_else_was_drawn() -> None:
    quiet, busy = SeededRandom(7), SeededRandom(7)
    _draws(busy)
    _draws(busy.child("network"))
    assert _draws(busy.child("disk")) == _draws(quiet.child("disk"))


def test_children_differ_from_each_other_and_from_their_parent() -> None:
    root = SeededRandom(7)
    family = [root, root.child("a"), root.child("b"), SeededRandom(8).child("a")]
    grandchild = SeededRandom(7).child("b").child("a")
    sequences = {tuple(_draws(member)) for member in [*family, grandchild]}
    assert len(sequences) == 5


def test_a_name_is_given_once() -> None:
    root = SeededRandom(7)
    root.child("disk")
    with pytest.raises(InvariantError, match="'disk'"):
        root.child("disk")


def test_uuids_are_random_ones() -> None:
    source = SeededRandom.from_system()
    drawn = {source.uuid() for _ in range(100)}
    assert len(drawn) == 100
    assert {each.version for each in drawn} == {4}
