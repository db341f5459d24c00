"""A message as JSON, as Kafka's own tools show what stands in internal topics.

Names are in camel case, bytes are base64, ids are Kafka's base64 for URLs. A field shows up if the
version has it; a tagged one, if it is not at its default.
"""

from __future__ import annotations

import base64
import uuid
from typing import Any

from headwater.base.ids import topic_id_to_text
from headwater.wire.schema import Struct


def message_json(struct: Struct, version: int) -> dict[str, Any]:
    """The fields that a version has, ready for `json.dumps`."""
    described: dict[str, Any] = {}
    defaults = type(struct)()
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        is_left_out = field.is_tagged_in(version) and value == getattr(defaults, field.name)
        if field.exists_in(version) and not is_left_out:
            described[_camel_case(field.name)] = _value_json(value, version)
    return described


def _value_json(value: object, version: int) -> Any:
    if isinstance(value, Struct):
        return message_json(value, version)
    if isinstance(value, list):
        return [_value_json(item, version) for item in value]
    if isinstance(value, uuid.UUID):
        return topic_id_to_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
