"""Levels of loggers under Kafka's names."""

import logging
from collections.abc import Iterator

import pytest

from headwater.base.errors import ErrorCode, KafkaError
from headwater.broker.settings.logger_levels import LEVELS, check_level, logger_levels, set_level

PARENT, CHILD = "headwater.test_levels", "headwater.test_levels.child"


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    root_level = logging.root.level
    for name in (PARENT, CHILD):
        logging.getLogger(name)
    yield
    for name in (PARENT, CHILD):
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.root.setLevel(root_level)


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_can_be_set_and_is_shown(level: str) -> None:
    set_level(PARENT, level)
    assert dict(logger_levels([PARENT, CHILD])) == {PARENT: level, CHILD: level}


def test_levels_keep_their_order() -> None:
    logger = logging.getLogger(PARENT)
    set_level(PARENT, "DEBUG")
    assert logger.isEnabledFor(logging.DEBUG) and not logger.isEnabledFor(5)
    set_level(PARENT, "TRACE")
    assert logger.isEnabledFor(5)
    set_level(PARENT, "FATAL")
    assert not logger.isEnabledFor(logging.ERROR) and logger.isEnabledFor(logging.CRITICAL)


def test_without_a_level_a_logger_follows_the_one_above() -> None:
    set_level(PARENT, "ERROR")
    set_level(CHILD, "DEBUG")
    set_level(CHILD, None)
    assert dict(logger_levels([CHILD])) == {CHILD: "ERROR"}


def test_levels_in_between_count_as_the_one_below() -> None:
    logging.getLogger(PARENT).setLevel(logging.INFO + 5)
    assert dict(logger_levels([PARENT])) == {PARENT: "INFO"}
    logging.getLogger(PARENT).setLevel(1)
    assert dict(logger_levels([PARENT])) == {PARENT: "TRACE"}


def test_all_loggers_are_shown_the_root_first() -> None:
    names = [name for name, _ in logger_levels()]
    assert names[0] == "root"
    assert {PARENT, CHILD, "headwater"} <= set(names)
    set_level("root", "WARN")
    assert next(logger_levels()) == ("root", "WARN")


@pytest.mark.parametrize(
    ("name", "level", "code"),
    [
        (PARENT, "LOUD", ErrorCode.INVALID_CONFIG),
        (PARENT, "debug", ErrorCode.INVALID_CONFIG),
        ("no.such.logger", "INFO", ErrorCode.INVALID_CONFIG),
        ("root", None, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_set(name: str, level: str | None, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        check_level(name, level)
    assert raised.value.code is code
    assert "no.such.logger" not in logging.root.manager.loggerDict


def test_what_can_be_set() -> None:
    for level in (*LEVELS, None):
        check_level(CHILD, level)
