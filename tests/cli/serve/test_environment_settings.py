"""Settings of `headwater serve` that come from environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.tables import BROKER_SETTINGS
from headwater.cli.serve.environment_settings import environment_settings, variable_name
from headwater.cli.serve.settings import serve_settings


def _serve(
    environment: dict[str, str], config: Path | None = None, *assignments: str
) -> SettingValues:
    return serve_settings(
        listen=[],
        data_dirs=[],
        broker_id=None,
        config_path=None if config is None else str(config),
        assignments=assignments,
        environment=environment,
    )


def test_every_setting_has_a_variable_of_its_own() -> None:
    names = [variable_name(row.name) for row in BROKER_SETTINGS]
    assert len(set(names)) == len(names)
    assert variable_name("log.retention.ms") == "HEADWATER_LOG_RETENTION_MS"


def test_variables_beat_the_file_and_assignments_beat_variables(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.retention.ms=1\nnum.partitions=1\nlisteners=PLAINTEXT://file:1\n")
    environment = {
        "HEADWATER_LOG_RETENTION_MS": "2",
        "HEADWATER_NUM_PARTITIONS": "2",
        "HEADWATER_LISTENERS": "PLAINTEXT://0.0.0.0:9092",
        "HEADWATER_BROKER_RACK": "",
        "PATH": "/bin",
    }
    values = _serve(environment, file, "num.partitions=3")
    assert values.integer("log.retention.ms") == 2
    assert values.integer("num.partitions") == 3
    assert values.render("listeners") == "PLAINTEXT://0.0.0.0:9092"
    assert values.optional_text("broker.rack") is None


def test_a_value_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(SettingError, match=r"num\.partitions"):
        _serve({"HEADWATER_NUM_PARTITIONS": "many"})


def test_a_mistyped_variable_is_told_and_those_of_others_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _serve({"HEADWATER_LOG_RETENTION_MSEC": "1"})
    told = capsys.readouterr().err
    assert "HEADWATER_LOG_RETENTION_MSEC is no setting" in told
    assert "HEADWATER_LOG_RETENTION_MS" in told
    others = ("BOOTSTRAP_SERVER", "CACHE", "COMPLETE", "DEBUG", "ENTRY", "TEST_TIER", "REQUIRE_ALL")
    texts, warnings = environment_settings({f"HEADWATER_{name}": "1" for name in others})
    assert (texts, warnings) == ({}, [])
