"""How much a coordinator keeps of what members of groups tell it.

Subscriptions and assignments are bytes that only members understand, and they stay in memory for as
long as a member says that its session lasts. A request may be 100 MiB; nothing that is honest comes
near a hundredth of that. Kafka bounds them by what fits a record of `__consumer_offsets`, and tells
so when the group is stored, with UNKNOWN_SERVER_ERROR. Here they are refused when they arrive, with
INVALID_REQUEST, which no client takes for a passing trouble.
"""

from __future__ import annotations

import logging

from headwater.base.errors import ErrorCode, KafkaError
from headwater.coordinator.live_settings import LiveSettings

_logger = logging.getLogger(__name__)


def check_member_metadata(group_id: str, size_bytes: int, settings: LiveSettings) -> None:
    """Raise unless one member may bring so much."""
    _check(group_id, "A member", size_bytes, "group.member.metadata.max.bytes", settings)


def check_group_metadata(group_id: str, size_bytes: int, settings: LiveSettings) -> None:
    """Raise unless all members together may have so much."""
    _check(group_id, "The members together", size_bytes, "group.metadata.max.bytes", settings)


def _check(group_id: str, who: str, size_bytes: int, name: str, settings: LiveSettings) -> None:
    allowed = settings.integer(name)
    if size_bytes > allowed:
        sentence = f"{who} would bring {size_bytes} bytes, and {name} is {allowed}."
        # No answer of these requests has a place for a sentence.
        _logger.info("A member of the group %s is refused: %s", group_id, sentence)
        raise KafkaError(ErrorCode.INVALID_REQUEST, sentence)
