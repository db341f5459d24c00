import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.checks import InvariantError
from headwater.base.errors import ErrorCode
from headwater.base.setting import (
    Setting,
    SettingError,
    SettingFaults,
    SettingKind,
    SettingValue,
    Synonym,
    refuse,
)


def _setting(
    kind: SettingKind,
    *,
    default: SettingValue = None,
    lower: float | None = None,
    upper: float | None = None,
    choices: tuple[str, ...] = (),
) -> Setting:
    return Setting("a.b", kind, default, "A doc.", lower=lower, upper=upper, choices=choices)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SettingKind.BOOLEAN, "true", True),
        (SettingKind.BOOLEAN, " FALSE ", False),
        (SettingKind.INT, " 42\t", 42),
        (SettingKind.INT, "-2147483648", -(2**31)),
        (SettingKind.INT, "+7", 7),
        (SettingKind.SHORT, "32767", 32_767),
        (SettingKind.LONG, "9223372036854775807", 2**63 - 1),
        (SettingKind.DOUBLE, "0.5", 0.5),
        (SettingKind.DOUBLE, "1e3", 1_000.0),
        (SettingKind.DOUBLE, "3", 3.0),
        (SettingKind.STRING, "  a b  ", "a b"),
        (SettingKind.STRING, "", ""),
        (SettingKind.LIST, "a, b ,c", ("a", "b", "c")),
        (SettingKind.LIST, " ", ()),
        (SettingKind.LIST, "a", ("a",)),
        (SettingKind.CLASS, "org.example.Thing", "org.example.Thing"),
        (SettingKind.PASSWORD, "secret", "secret"),
    ],
)
def test_text_is_read_as_kafka_reads_it(kind: SettingKind, text: str, value: SettingValue) -> None:
    parsed = _setting(kind).parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("setting", "text", "allowed"),
    [
        (_setting(SettingKind.BOOLEAN), "yes", "true or false"),
        (_setting(SettingKind.BOOLEAN), "", "true or false"),
        (_setting(SettingKind.INT, lower=1), "0", "a whole number from 1 to 2147483647"),
        (_setting(SettingKind.INT, lower=1), "2147483648", "from 1 to 2147483647"),
        (_setting(SettingKind.INT, lower=1, upper=9), "10", "a whole number from 1 to 9"),
        (_setting(SettingKind.INT), "1_000", "from -2147483648 to 2147483647"),
        (_setting(SettingKind.INT), "1.0", "a whole number"),
        (_setting(SettingKind.INT), "0x10", "a whole number"),
        (_setting(SettingKind.INT), "\u0663", "a whole number"),
        (_setting(SettingKind.INT), "", "a whole number"),
        (_setting(SettingKind.SHORT), "32768", "from -32768 to 32767"),
        (_setting(SettingKind.LONG, lower=-1), "-2", "a whole number of at least -1"),
        (_setting(SettingKind.LONG, upper=5), "6", "a whole number of at most 5"),
        (_setting(SettingKind.LONG), "9" * 5_000, "a whole number"),
        (_setting(SettingKind.DOUBLE, lower=0, upper=1), "1.5", "a number from 0 to 1"),
        (_setting(SettingKind.DOUBLE), "nan", "a number"),
        (_setting(SettingKind.DOUBLE), "1e999", "a number"),
        (_setting(SettingKind.STRING, choices=("a", "b", "c")), "d", "a, b or c"),
        (_setting(SettingKind.STRING, choices=("a",)), "d", "must be a."),
        (
            _setting(SettingKind.LIST, choices=("compact", "delete")),
            "compact,x",
            "a comma-separated list of compact or delete",
        ),
    ],
)
def test_a_bad_value_is_told_in_one_sentence(setting: Setting, text: str, allowed: str) -> None:
    with pytest.raises(SettingError, match=re.escape(allowed)) as caught:
        setting.parse(text, "server.properties")
    sentence = str(caught.value)
    shown = repr(text) if len(text) <= 100 else f"{text[:100]!r}..."
    assert sentence.startswith(f"The setting a.b in server.properties cannot be {shown}: it must")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_password_is_never_shown_unless_asked_for() -> None:
    row = _setting(SettingKind.PASSWORD, choices=("right",))
    assert row.render("right") == "[hidden]"
    assert row.render("right", reveal=True) == "right"
    with pytest.raises(SettingError) as caught:
        row.parse("guess")
    assert "guess" not in str(caught.value)


_VALUES: dict[SettingKind, st.SearchStrategy[SettingValue]] = {
    SettingKind.BOOLEAN: st.booleans(),
    SettingKind.SHORT: st.integers(-(2**15), 2**15 - 1),
    SettingKind.INT: st.integers(-(2**31), 2**31 - 1),
    SettingKind.LONG: st.integers(-(2**63), 2**63 - 1),
    SettingKind.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    SettingKind.STRING: st.text().map(str.strip),
    SettingKind.LIST: st.lists(st.text("abc.*", min_size=1)).map(tuple),
    SettingKind.PASSWORD: st.text().map(str.strip),
}


@given(st.data())
def test_what_is_rendered_is_read_back(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(_VALUES)))
    value = data.draw(_VALUES[kind])
    row = _setting(kind)
    text = row.render(value, reveal=True)
    assert text is not None
    assert row.parse(text) == value


def test_no_value_has_no_text() -> None:
    assert _setting(SettingKind.LONG).render(None) is None


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (SettingKind.INT, True),
        (SettingKind.INT, "5"),
        (SettingKind.INT, 2**31),
        (SettingKind.BOOLEAN, 1),
        (SettingKind.DOUBLE, 1),
        (SettingKind.LIST, "a,b"),
        (SettingKind.STRING, 5),
    ],
)
def test_a_default_of_the_wrong_kind_fails_at_once(
    kind: SettingKind, default: SettingValue
) -> None:
    with pytest.raises(InvariantError, match="default"):
        _setting(kind, default=default)


def test_a_default_out_of_bounds_or_a_missing_doc_fails_at_once() -> None:
    with pytest.raises(InvariantError, match="from 1 to"):
        _setting(SettingKind.INT, default=0, lower=1)
    with pytest.raises(InvariantError, match="doc"):
        Setting("a.b", SettingKind.INT, 0, "")


def test_synonyms_turn_units_but_not_the_meaning_of_minus_one() -> None:
    hours = Synonym("log.retention.hours", 3_600_000)
    assert hours.value_from(168) == 604_800_000
    assert hours.value_from(-1) == -1
    assert hours.value_from(None) is None
    assert Synonym("log.cleanup.policy").value_from(("delete",)) == ("delete",)


def test_several_faults_are_told_at_once_and_one_as_it_is() -> None:
    refuse([])
    with pytest.raises(SettingError, match=r"^One\.$") as one:
        refuse(["One."])
    assert one.value.sentences == ("One.",)
    with pytest.raises(SettingFaults, match=r"^One\. Two\.$") as two:
        refuse(["One.", "Two."])
    # A child process may hand them to its parent.
    for told in (two.value, pickle.loads(pickle.dumps(two.value))):
        assert (told.sentences, told.code) == (("One.", "Two."), ErrorCode.INVALID_CONFIG)
