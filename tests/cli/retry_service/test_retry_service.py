"""`headwater retry-service`: what it says of a command line that makes no sense, and as it starts.

What it does is tested in tests/delivery/retry_service.
"""

from __future__ import annotations

import pytest

from headwater.testing import broker
from tests.support.command import run_command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--delays", "soon"), "is no length of time"),
        (("--delays", ""), "needs at least one delay"),
        (("--partitions", "0"), "0 is less than 1"),
        (("--report-interval", "0"), "it must be 1ms at least"),
        (("--producer-property", "acks"), "should be NAME=VALUE"),
    ],
)
def test_what_cannot_be_is_told(arguments: tuple[str, ...], sentence: str) -> None:
    told = run_command("retry-service", "billing", *arguments, "-b", "127.0.0.1:1")
    assert told.exit_code == 2
    assert sentence in told.stderr
    assert "Traceback" not in told.stderr


def test_topics_that_are_missing_are_named_if_it_may_not_create_them() -> None:
    with broker() as running:
        told = run_command("retry-service", "billing", "--no-create", "-b", running.bootstrap)
    assert told.exit_code == 1
    assert "dlq.billing, retry.billing, retry.billing.ready" in told.stderr
