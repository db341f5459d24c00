import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.properties_file import Property, properties_in, read_properties_file
from headwater.base.settings import SettingError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("\n  \n\t\n", {}),
        ("# comment\n! another\n  # indented", {}),
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("a:1\nb 2\nc\t=\t3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a = b = c", {"a": "b = c"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("a=x # no comment", {"a": "x # no comment"}),
        ("a=b\\\n   c,\\\n   d\ne=1", {"a": "bc,d", "e": "1"}),
        ("a=b\\\n# not a comment here", {"a": "b# not a comment here"}),
        ("a=b\\\\\nc=1", {"a": "b\\", "c": "1"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a=b\\", {"a": "b"}),
        (r"a\ b\:c\=d=1", {"a b:c=d": "1"}),
        (r"a=\t\n\r\f\x\\", {"a": "\t\n\r\fx\\"}),
        (r"a=caf\u00e9\u0021", {"a": "caf\u00e9!"}),
        (r"a=\ud83d\ude00", {"a": "\U0001f600"}),
    ],
)
def test_files_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert read_properties_file(text) == expected


@pytest.mark.parametrize("text", [r"b=\u12", r"b=\u12gz", r"b=\uu1234", r"b=\ud83d", r"\u=1"])
def test_a_bad_escape_names_its_line(text: str) -> None:
    with pytest.raises(SettingError, match=r"^Line 3 of server\.properties has a \\u escape"):
        read_properties_file(f"# comment\na=1\n{text}\n", "server.properties")


def test_a_value_without_a_name_names_its_line() -> None:
    with pytest.raises(SettingError, match="Line 4 of the properties file"):
        read_properties_file("a=1\\\n2\n\n=5")


def test_lines_are_read_behind_one_that_is_wrong() -> None:
    found = list(properties_in("a=1\n=2\nb=\\\n  3\nc=\\u1\na=4\n", "a file"))
    assert [each for each in found if isinstance(each, Property)] == [
        (1, "a", "1"),
        (3, "b", "3"),
        (6, "a", "4"),
    ]
    faults = [str(each) for each in found if isinstance(each, SettingError)]
    assert [fault[:16] for fault in faults] == ["Line 2 of a file", "Line 5 of a file"]


def _escape(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(_TEXT, _TEXT))
def test_whatever_is_escaped_is_read_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{_escape(name)}={_escape(value)}" for name, value in properties.items())
    assert read_properties_file(text) == properties


@given(st.text("a=:\\u0 \t\n\r#!"))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    try:
        read_properties_file(text)
    except SettingError as error:
        assert str(error).startswith("Line ")
