"""Values know their place, and no text whatever makes the reader fail in another way."""

from hypothesis import given
from hypothesis import strategies as st

from headwater.pipeline.declared.problems import Place, Problems
from headwater.pipeline.declared.yaml_document import (
    ListValue,
    MapValue,
    NoValue,
    TextValue,
    Value,
    plain_value,
    read_document,
)


def read(text: str) -> tuple[Value | None, list[str]]:
    problems = Problems()
    value = read_document(text, problems)
    return value, [f"{place.line}:{place.column} {said}" for place, said in problems.in_order()]


def test_every_value_has_its_line_and_column() -> None:
    value, said = read("a: 1\nb:\n  - x\n  - {c: yes}\nd:\n")
    assert isinstance(value, MapValue) and said == []
    assert [(entry.key, entry.place) for entry in value.entries] == [
        ("a", Place(1, 1)),
        ("b", Place(2, 1)),
        ("d", Place(5, 1)),
    ]
    items = value.entries[1].value
    assert isinstance(items, ListValue) and items.items[0].place == Place(3, 5)
    assert isinstance(value.entries[2].value, NoValue)
    assert plain_value(value) == {"a": 1, "b": ["x", {"c": True}], "d": None}


def test_a_scalar_stays_the_text_that_it_is() -> None:
    value, _ = read("topic: 007\nother: no\nquoted: '5'\n")
    assert isinstance(value, MapValue)
    texts = [entry.value.text for entry in value.entries if isinstance(entry.value, TextValue)]
    assert texts == ["007", "no", "5"]
    assert plain_value(value) == {"topic": 7, "other": False, "quoted": "5"}


def test_a_letter_of_a_text_has_a_place_too() -> None:
    value, _ = read(
        "plain: one two\nquoted: 'one two'\nblock: |\n  one\n  two\nfolded: >\n  a\n  b\n"
    )
    assert isinstance(value, MapValue)
    texts = [entry.value for entry in value.entries if isinstance(entry.value, TextValue)]
    assert [text.place_at(text.text.index("t")) for text in texts[:3]] == [
        Place(1, 12),
        Place(2, 14),
        Place(5, 1),
    ]
    assert texts[3].place_at(2) == texts[3].place


def test_wrong_form_is_one_sentence_with_a_place() -> None:
    cases = {
        "a: 1\na: 2\n": "2:1 'a' is here twice, first in line 1.",
        "a: b: c\n": "1:5 this is not YAML: a colon is not expected here; a string with a colon in "
        "it needs quotes.",
        "a:\n\t- b\n": "2:1 this is not YAML: a tab is used for indentation, where only spaces may "
        "be.",
        "": "1:1 the file is empty.",
        "# nothing\n": "1:1 the file is empty.",
        "a: &x [*x]\n": "1:4 this value contains itself.",
        "a: {b: ${c}}\n": "1:9 this is not YAML: between braces or brackets, a value with ${...} "
        "needs quotes.",
        "? [a]\n: b\n": "1:3 a key must be a string.",
        "<<: 5\n": "1:5 `<<` takes a mapping.",
    }
    assert {text: read(text)[1] for text in cases} == {text: [said] for text, said in cases.items()}


def test_merged_mappings_give_what_is_missing() -> None:
    value, said = read("base: &base {a: 1, b: 2}\nuse:\n  <<: *base\n  b: 3\n")
    assert isinstance(value, MapValue) and said == []
    assert plain_value(value.entries[1].value) == {"b": 3, "a": 1}


def test_a_file_that_unfolds_without_end_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert read("\n".join(lines))[1] == ["1:1 the file has more than 20000 values."]
    assert read("[" * 1200)[1] != []


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_gives_a_value_or_a_problem(text: str) -> None:
    value, said = read(text)
    assert value is not None or said
    if value is not None:
        plain_value(value)


@given(st.text(alphabet="ab:-{}[]\n \t'\"|>&*!#%@`,?<$", max_size=60))
def test_any_signs_give_a_value_or_a_problem(text: str) -> None:
    value, said = read(text)
    assert value is not None or said
    if value is not None:
        plain_value(value)
