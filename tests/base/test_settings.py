import pytest

from headwater.base.checks import InvariantError
from headwater.base.settings import (
    DynamicScope,
    Setting,
    SettingError,
    SettingKind,
    SettingTable,
    Synonym,
    render_markdown,
)

_LOG = SettingTable(
    "broker",
    [
        Setting(
            "log.segment.bytes",
            SettingKind.INT,
            1_073_741_824,
            "Size at which a segment is closed.",
            lower=14,
            dynamic=DynamicScope.CLUSTER_WIDE,
            topic_name="segment.bytes",
        ),
        Setting(
            "log.retention.ms",
            SettingKind.LONG,
            None,
            "How long | records are kept.",
            topic_name="retention.ms",
            synonyms=(
                Synonym("log.retention.minutes", 60_000),
                Synonym("log.retention.hours", 3_600_000),
            ),
        ),
        Setting("log.retention.minutes", SettingKind.INT, None, "The same in minutes."),
        Setting("log.retention.hours", SettingKind.INT, 168, "The same in hours."),
        Setting(
            "log.cleanup.policy",
            SettingKind.LIST,
            ("delete",),
            "What happens to old records.",
            choices=("compact", "delete"),
            topic_name="cleanup.policy",
        ),
        Setting("log.preallocate", SettingKind.BOOLEAN, False, "Reserve the space of a segment."),
        Setting("cleaner.ratio", SettingKind.DOUBLE, 0.5, "How dirty is dirty.", lower=0, upper=1),
        Setting("log.dir", SettingKind.STRING, "/tmp/logs", "Where the log is."),
    ],
)


def test_values_are_typed_and_know_what_was_set() -> None:
    values = _LOG.parse(
        {"log.segment.bytes": " 1000 ", "log.preallocate": "TRUE"}, "server.properties"
    )
    assert values.integer("log.segment.bytes") == 1_000
    assert values.boolean("log.preallocate") is True
    assert values.number("cleaner.ratio") == 0.5
    assert values.text("log.dir") == "/tmp/logs"
    assert values.texts("log.cleanup.policy") == ("delete",)
    assert values.optional_integer("log.retention.ms") is None
    assert values.optional_integer("log.retention.hours") == 168
    assert values.optional_text("log.dir") == "/tmp/logs"
    assert values.optional_texts("log.cleanup.policy") == ("delete",)
    assert dict(values.sources) == {
        "log.segment.bytes": "server.properties",
        "log.preallocate": "server.properties",
    }
    assert values.render("log.preallocate") == "true"
    assert values.render("log.retention.ms") is None


def test_overrides_make_new_values_and_leave_the_old() -> None:
    before = _LOG.parse({"log.segment.bytes": "1000"}, "server.properties")
    after = before.with_overrides({"log.dir": "/data"}, "the command line")
    assert (before.text("log.dir"), after.text("log.dir")) == ("/tmp/logs", "/data")
    assert after.integer("log.segment.bytes") == 1_000
    assert after.sources["log.dir"] == "the command line"
    assert "log.dir" not in before.sources


def test_an_unknown_name_is_told_with_the_nearest_ones() -> None:
    with pytest.raises(SettingError) as caught:
        _LOG.parse({"log.segment.byte": "1"}, "server.properties")
    assert str(caught.value).startswith(
        "There is no broker setting 'log.segment.byte' in server.properties; "
        "did you mean log.segment.bytes"
    )
    with pytest.raises(SettingError, match=r"^There is no broker setting 'zzz'\.$"):
        _LOG.defaults().with_overrides({"zzz": "1"})
    with pytest.raises(SettingError, match=r"did you mean log\.dir"):
        _LOG["log.dirr"]


def test_a_bad_value_names_its_setting_and_source() -> None:
    with pytest.raises(SettingError, match=r"log\.segment\.bytes in the command line cannot be"):
        _LOG.parse({"log.segment.bytes": "13"}, "the command line")


def test_the_program_asking_for_the_wrong_thing_is_an_error_of_the_program() -> None:
    values = _LOG.defaults()
    with pytest.raises(InvariantError, match="no setting"):
        values.integer("log.segment")
    with pytest.raises(InvariantError, match="as int"):
        values.integer("log.preallocate")
    with pytest.raises(InvariantError, match="as str"):
        values.text("log.segment.bytes")
    with pytest.raises(InvariantError, match="unset"):
        values.integer("log.retention.ms")


def test_a_name_given_twice_fails_within_and_across_tables() -> None:
    row = Setting("log.dir", SettingKind.STRING, None, "Again.")
    with pytest.raises(InvariantError, match=r"log\.dir twice"):
        SettingTable("broker", [row, row])
    with pytest.raises(InvariantError, match=r"log\.dir twice"):
        SettingTable.combine("broker", _LOG, SettingTable("other", [row]))


def test_tables_combine() -> None:
    other = SettingTable("net", [Setting("port", SettingKind.INT, 9092, "Where to listen.")])
    both = SettingTable.combine("broker", _LOG, other)
    assert len(both) == len(_LOG) + 1
    assert "port" in both
    assert both["port"].default == 9092
    assert [row.name for row in both] == [row.name for row in _LOG] + ["port"]


def test_topic_settings_come_from_the_same_rows() -> None:
    topic = _LOG.topic_table("topic")
    assert [row.name for row in topic] == ["segment.bytes", "retention.ms", "cleanup.policy"]
    assert topic["segment.bytes"].lower == 14
    assert topic.defaults().integer("retention.ms") == 168 * 3_600_000


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.ms": "5", "log.retention.minutes": "2"}, 5),
    ],
)
def test_a_topic_inherits_the_finest_unit_that_the_broker_sets(
    broker: dict[str, str], retention_ms: int
) -> None:
    topic = _LOG.topic_table("topic")
    inherited = topic.inherit(_LOG.parse(broker, "server.properties"))
    assert inherited.integer("retention.ms") == retention_ms
    assert not inherited.sources
    own = inherited.with_overrides({"retention.ms": "77"}, "the topic")
    assert own.integer("retention.ms") == 77


def test_documentation_has_a_line_for_every_row() -> None:
    lines = render_markdown(_LOG).splitlines()
    assert len(lines) == 2 + len(_LOG)
    assert lines[2].startswith("| `cleaner.ratio` | double | `0.5` | a number from 0 to 1 |")
    assert (
        "| `log.segment.bytes` | int | `1073741824` | a whole number from 14 to 2147483647 "
        "| cluster-wide | Size at which a segment is closed. |"
    ) in lines
    assert any(r"How long \| records are kept." in line and "| none |" in line for line in lines)
