import pytest

from headwater.base.counted import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12_345, "12,345 rows")]
)
def test_a_number_has_its_noun(number: int, text: str) -> None:
    assert counted(number, "row") == text


def test_a_plural_of_another_form() -> None:
    assert counted(1, "query", "queries") == "1 query"
    assert counted(3, "query", "queries") == "3 queries"
