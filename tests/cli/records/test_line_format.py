import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.records.line_format import LineError, LineFormat

BOTH = ["parse.key=true", "parse.headers=true"]


@pytest.mark.parametrize(
    ("properties", "line", "parsed"),
    [
        ([], b"a\tb", (None, b"a\tb", ())),
        ([], b"", (None, b"", ())),
        (["parse.key=true"], b"k\tv\tw", (b"k", b"v\tw", ())),
        (["parse.key=true", "key.separator=:"], b"k:v:w", (b"k", b"v:w", ())),
        (["parse.key=true", "key.separator=\\t"], b"k\tv", (b"k", b"v", ())),
        (["parse.key=true", "null.marker=NULL"], b"NULL\tNULL", (None, None, ())),
        (["parse.headers=true"], b"a:1,b:2\tv", (None, b"v", (("a", b"1"), ("b", b"2")))),
        (["parse.headers=true", "null.marker=-"], b"-\tv", (None, b"v", ())),
        (["parse.headers=true", "null.marker=-"], b"a:-\tv", (None, b"v", (("a", None),))),
        (BOTH, b"a:1\tk\tv", (b"k", b"v", (("a", b"1"),))),
        (
            [
                *BOTH,
                "headers.delimiter=|",
                "headers.separator=;",
                "headers.key.separator==",
                "key.separator=!",
            ],
            b"a=1;b=x=y|k!v",
            (b"k", b"v", (("a", b"1"), ("b", b"x=y"))),
        ),
        ([*BOTH, "ignore.error=true"], b"nothing", (None, b"nothing", ())),
        (["parse.headers=true"], b"\xff:1\tv", (None, b"v", (("\udcff", b"1"),))),
    ],
)
def test_lines(
    properties: list[str],
    line: bytes,
    parsed: tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]],
) -> None:
    assert LineFormat(properties).parse(line, 1) == parsed


@pytest.mark.parametrize(
    ("properties", "line", "reason"),
    [
        (["parse.key=true"], b"no tab", "There is no key separator in line 7: 'no tab'."),
        (["parse.headers=true"], b"x", "There is no headers delimiter in line 7: 'x'."),
        (["parse.headers=true"], b"x\tv", "There is no header key separator in line 7: "),
        (["parse.key=true"], b"x" * 100, "line 7: '" + "x" * 60 + "...'."),
    ],
)
def test_a_line_at_fault_is_named(properties: list[str], line: bytes, reason: str) -> None:
    with pytest.raises(LineError) as failed:
        LineFormat(properties).parse(line, 7)
    assert reason in str(failed.value)


@pytest.mark.parametrize(
    ("property_", "reason"),
    [
        ("parse.key", "should be NAME=VALUE"),
        ("parse.keys=true", "there is no property 'parse.keys'; did you mean 'parse.key'?"),
        ("parse.key=maybe", "parse.key is true or false"),
    ],
)
def test_a_property_at_fault_is_told(property_: str, reason: str) -> None:
    with pytest.raises(typer.BadParameter, match=reason):
        LineFormat([property_])


@given(key=st.binary(), value=st.binary())
def test_what_is_joined_comes_apart(key: bytes, value: bytes) -> None:
    key = key.replace(b"\t", b" ")
    assert LineFormat(["parse.key=true"]).parse(key + b"\t" + value, 1) == (key, value, ())
