"""The generated schemas against the definitions in Apache Kafka's own jar, version by version."""

import uuid
from functools import cache
from typing import Any, NamedTuple

import pytest

from headwater.wire.schema import NEVER_FLEXIBLE, Field, Struct, VersionRange
from tests.support.kafka.node import require_java_client
from tests.support.values.kio_messages import MessageKind, message_kinds
from tools.message_definitions import message_definitions

pytestmark = pytest.mark.kafka

IMPLICIT_DEFAULTS: dict[str, object] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": uuid.UUID(int=0),
}


class FieldLayout(NamedTuple):
    """One field as it is on the wire in one version; `kind` holds the layout of a struct."""

    name: str
    kind: object
    is_array: bool
    is_nullable: bool
    tag: int | None
    default: object


@cache
def definitions() -> dict[str, Any]:
    """Kafka's definitions by the name of the message."""
    return message_definitions(require_java_client().jars)


def is_within(version: int, versions: str | None) -> bool:
    """Whether a text such as "3+", "0-4", "2" or "none" has the version in it."""
    if versions is None or versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def kafka_layout(
    fields: list[dict[str, Any]], version: int, structs: dict[str, Any]
) -> list[FieldLayout]:
    layout = []
    for field in fields:
        if not is_within(version, field["versions"]):
            continue
        kind = field["type"].removeprefix("[]")
        is_array = kind != field["type"]
        is_struct = kind[0].isupper()
        nested = field.get("fields") or structs.get(kind, [])
        layout.append(
            FieldLayout(
                plain_name(field["name"]),
                kafka_layout(nested, version, structs) if is_struct else kind,
                is_array,
                is_within(version, field.get("nullableVersions")),
                field["tag"] if is_within(version, field.get("taggedVersions")) else None,
                kafka_default(kind, is_array or is_struct, field.get("default")),
            )
        )
    return tags_last(layout)


def kafka_default(kind: str, is_made: bool, text: Any) -> object:
    if text == "null":
        return None
    if is_made:
        return "new"
    if text is None or text == "":
        return IMPLICIT_DEFAULTS.get(kind, 0)
    if kind == "string":
        return text
    return text in ("true", True) if kind == "bool" else int(str(text), 0)


def our_layout(struct_class: type[Struct], version: int) -> list[FieldLayout]:
    defaults = struct_class()
    layout = []
    for field in struct_class.FIELDS:
        if field.exists_in(version):
            default = getattr(defaults, field.name)
            layout.append(
                FieldLayout(
                    plain_name(field.name),
                    our_kind(field, version),
                    field.array,
                    field.is_nullable_in(version),
                    field.tag if field.is_tagged_in(version) else None,
                    "new" if isinstance(default, (list, Struct)) else default,
                )
            )
    return tags_last(layout)


def our_kind(field: Field, version: int) -> object:
    return field.kind if isinstance(field.kind, str) else our_layout(field.kind, version)


def plain_name(name: str) -> str:
    """A name that is spelled the same on both sides: times are in milliseconds by name in ours."""
    return name.replace("_", "").lower().removesuffix("ms")


def tags_last(layout: list[FieldLayout]) -> list[FieldLayout]:
    return sorted(layout, key=lambda field: -1 if field.tag is None else field.tag)


def version_range(text: str) -> VersionRange:
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


@pytest.mark.parametrize("kind", list(message_kinds()), ids=str)
def test_each_version_has_the_fields_that_apache_kafka_has(kind: MessageKind) -> None:
    definition = definitions()[kind.message_class.__name__]
    theirs = version_range(definition["validVersions"])
    assert theirs == kind.message_class.VERSIONS
    assert definition.get("apiKey", -1) == kind.message_class.API_KEY
    structs = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    for version in range(theirs.lowest, theirs.highest + 1):
        is_flexible = version >= kind.message_class.FLEXIBLE_SINCE
        assert is_flexible == is_within(version, definition["flexibleVersions"])
        expected = kafka_layout(definition["fields"], version, structs)
        assert our_layout(kind.message_class, version) == expected, f"version {version}"
    if definition["flexibleVersions"] == "none":
        assert kind.message_class.FLEXIBLE_SINCE == NEVER_FLEXIBLE
