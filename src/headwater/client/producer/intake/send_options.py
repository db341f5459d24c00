"""What a producer was given that decides what happens to a record before it is on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from headwater.base.settings import SettingValues
from headwater.client.producer.batches.audit_numbers import AUDIT_HEADER_BYTES
from headwater.client.producer.intake.interceptors import Interceptors
from headwater.client.producer.intake.partitioners import (
    Partitioner,
    PartitionerLike,
    make_partitioner,
)
from headwater.client.producer.intake.serialized_record import RECORD_OVERHEAD_BYTES
from headwater.client.producer.intake.serializers import Serialize, SerializerLike, serialize_with
from headwater.client.settings.producer_settings import DROP

#: Gets topic, key and value of a record for which there was no memory.
OnDrop: TypeAlias = Callable[[str, Any, Any], object]


class SendOptions(NamedTuple):
    interceptors: Interceptors
    serialize_key: Serialize
    serialize_value: Serialize
    partitioner: Partitioner | None
    #: Whether there is no code of the user's in a record's way, and no number to be given.
    are_plain: bool
    ignores_keys: bool
    #: About what a record takes beyond key, value and its own headers.
    overhead_bytes: int
    record_bytes_max: int
    drops_when_full: bool
    on_drop: OnDrop | None
    wall_ms: Callable[[], int]


def make_send_options(
    values: SettingValues,
    *,
    key_serializer: SerializerLike | None,
    value_serializer: SerializerLike | None,
    partitioner: PartitionerLike | None,
    interceptors: Iterable[object],
    on_drop: OnDrop | None,
    wall_ms: Callable[[], int],
) -> SendOptions:
    if on_drop is not None and not callable(on_drop):
        raise TypeError(f"on_drop cannot be {on_drop!r}: it must be a function.")
    chain = Interceptors(interceptors)
    own_partitioner = make_partitioner(partitioner)
    is_numbered = values.boolean("audit.ids.enable")
    has_serializers = key_serializer is not None or value_serializer is not None
    return SendOptions(
        interceptors=chain,
        serialize_key=serialize_with(key_serializer, "key"),
        serialize_value=serialize_with(value_serializer, "value"),
        partitioner=own_partitioner,
        are_plain=not (chain or has_serializers or own_partitioner or is_numbered),
        ignores_keys=values.boolean("partitioner.ignore.keys"),
        overhead_bytes=RECORD_OVERHEAD_BYTES + (AUDIT_HEADER_BYTES if is_numbered else 0),
        record_bytes_max=values.integer("max.request.size"),
        drops_when_full=values.text("buffer.full.policy") == DROP,
        on_drop=on_drop,
        wall_ms=wall_ms,
    )
