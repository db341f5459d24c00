"""`headwater delay-service`: what it refuses, and what it prints."""

import json

import pytest

from headwater.cli.delay_service.process import _as_json, _as_text
from headwater.delivery.delay_service.level_figures import LatenessFigures
from headwater.delivery.delay_service.level_loop import LevelReport
from tests.support.command import run_command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--levels", "10s,5s"), "The levels '10s,5s' do not rise"),
        (("--levels", "soon"), "'soon' is no length of time"),
        (("--report-interval", "0s"), "it must be 1ms at least"),
        (("--partitions", "0"), "0 is less than 1"),
        (("--producer-property", "linger.ms"), "'linger.ms' should be NAME=VALUE"),
    ],
)
def test_bad_options_are_refused_with_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    refused = run_command("delay-service", *arguments)
    assert refused.exit_code == 2
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


REPORT = LevelReport("30s", 2, 12, 1204, 1, LatenessFigures(3, 11, 40))


def test_a_report_is_a_line_for_people_or_an_object_for_programs() -> None:
    assert _as_text(REPORT) == (
        "level 30s  waiting 12, forwarded 1,204, dead 1, late p50 3 ms, p99 11 ms"
    )
    assert json.loads(_as_json(REPORT)) == {
        "level": "30s",
        "partitions": 2,
        "waiting": 12,
        "forwarded": 1204,
        "dead": 1,
        "lateness_p50_ms": 3,
        "lateness_p99_ms": 11,
        "lateness_max_ms": 40,
    }


def test_a_quiet_level_says_so() -> None:
    quiet = REPORT._replace(lateness=LatenessFigures(None, None, None))
    assert _as_text(quiet).endswith("nothing forwarded")
