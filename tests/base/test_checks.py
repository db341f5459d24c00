import pytest

from headwater.base.checks import InvariantError, check, require


class _Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("formatted although the check holds")


def test_a_condition_that_holds_formats_nothing() -> None:
    check(True, "%s", _Unprintable())
    check([0], "a list with something in it is true")


def test_a_condition_that_fails_is_told_with_its_values() -> None:
    with pytest.raises(InvariantError, match=r"^5 is more than 3$"):
        check(5 <= 3, "%d is more than %d", 5, 3)


def test_a_message_without_values_may_hold_a_percent_sign() -> None:
    with pytest.raises(InvariantError, match=r"^100% wrong$"):
        check(0, "100% wrong")


@pytest.mark.parametrize("value", ["there", "", 0, False, []])
def test_a_value_that_is_required_is_handed_back_also_if_it_is_false(value: object) -> None:
    assert require(value, "%s", _Unprintable()) is value


def test_a_required_value_that_is_not_there_fails_like_a_check() -> None:
    names: dict[int, str] = {}
    with pytest.raises(InvariantError, match=r"^broker 3 has no name$"):
        require(names.get(3), "broker %d has no name", 3)
    with pytest.raises(InvariantError, match=r"^100% missing$"):
        require(names.get(3), "100% missing")
