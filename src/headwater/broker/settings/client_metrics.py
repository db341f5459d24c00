"""Whether a subscription to the metrics of clients can say something.

Subscriptions are kept, so that tools which write them work. No client hears of them, because
nothing here receives metrics. The error codes are Kafka's.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.settings import SettingError
from headwater.broker.settings.rows.client_metrics import CLIENT_METRICS_SETTINGS

#: What a pattern may look at.
_MATCHED: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
_NOT_COMPILED: Final = (re.error, RecursionError, OverflowError)
#: Classes of characters in the regular expressions of Java, which Python does not have.
_JAVA_CLASS: Final = re.compile(r"\\[pP]\{\w+\}")


def check_client_metrics_name(name: str) -> None:
    """Whether there is such a setting; raises `KafkaError`."""
    if name not in CLIENT_METRICS_SETTINGS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Client metrics have no setting {name!r}.")


def check_client_metrics_setting(name: str, text: str) -> None:
    """Whether a subscription can be given this; raises `KafkaError`."""
    check_client_metrics_name(name)
    row = CLIENT_METRICS_SETTINGS[name]
    try:
        row.parse(text)
    except SettingError as error:
        if text.strip().removeprefix("-").isdecimal():
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
        raise
    if name == "match" and text.strip():
        for pattern in text.split(","):
            _check_pattern(pattern.strip())


def _check_pattern(pattern: str) -> None:
    what, _, expression = (part.strip() for part in pattern.partition("="))
    if what not in _MATCHED or not expression or "=" in expression:
        raise SettingError(
            f"The pattern {pattern!r} matches no clients: it must be one of "
            f"{', '.join(sorted(_MATCHED))}, then = and a regular expression."
        )
    try:
        re.compile(_JAVA_CLASS.sub(r"\\w", expression))
    except _NOT_COMPILED:
        raise SettingError(f"The pattern {pattern!r} has no regular expression.") from None
