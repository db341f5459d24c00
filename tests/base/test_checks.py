import pytest

from headwater.base.checks import InvariantViolation, check


class _Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("formatted although the check holds")


def test_a_condition_that_holds_formats_nothing() -> None:
    check(True, "%s", _Unprintable())
    check([0], "a list with something in it is true")


def test_a_condition_that_fails_is_told_with_its_values() -> None:
    with pytest.raises(InvariantViolation, match=r"^5 is more than 3$"):
        check(5 <= 3, "%d is more than %d", 5, 3)


def test_a_message_without_values_may_hold_a_percent_sign() -> None:
    with pytest.raises(InvariantViolation, match=r"^100% wrong$"):
        check(0, "100% wrong")
