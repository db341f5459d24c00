"""Kafka's messages, each as the union of all its versions, drawn from the kio package.

kio holds one frozen dataclass per message and version. Here the versions of a message are laid over
each other: a field then knows in which versions it exists, in which it may be null and in which it
is tagged. Whatever does not fit that picture (versions with a gap, a field whose type or default
changes, two orders of the same fields) raises `SchemaConflictError`, so that nothing is lost
without notice when kio moves on.
"""

import dataclasses
import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import kio.schema
from kio.schema.index import api_key_map

from tools.kio_fields import FieldSchema, SchemaConflictError, Versions, field_in_version

# Share groups, Kafka Streams' groups and the Raft quorum are outside what Headwater speaks.
SKIPPED_WORDS: Final = frozenset({"share", "streams", "voter", "vote", "epoch", "snapshot"})
KEPT_ANYWAY: Final = frozenset({"offset_for_leader_epoch"})
# Kafka's default for these is null, which kio leaves out.
NULL_DEFAULTS: Final = frozenset(
    {
        "ConsumerGroupHeartbeatRequest.topic_partitions",
        "ListPartitionReassignmentsRequest.topics",
    }
)
DATA_MODULES: Final = ("consumer_protocol_assignment", "consumer_protocol_subscription")


class ClassSchema(NamedTuple):
    """One message, or one struct inside a message."""

    name: str
    fields: tuple[FieldSchema, ...]


class MessageSchema(NamedTuple):
    """One message with its structs, inner ones first; the message itself comes last."""

    kio_name: str
    versions: Versions
    flexible_since: int | None
    classes: tuple[ClassSchema, ...]


class ModuleSchema(NamedTuple):
    """The messages of one API (request, then response), or one data message."""

    name: str
    api_key: int | None
    messages: tuple[MessageSchema, ...]


def module_schemas() -> Iterator[ModuleSchema]:
    """All modules that Headwater has, APIs by key first."""
    for api_key, name in sorted(api_key_map.items()):
        if name in KEPT_ANYWAY or not SKIPPED_WORDS & set(name.split("_")):
            messages = tuple(_message_schema(name, part) for part in ("request", "response"))
            yield ModuleSchema(name, api_key, _without_name_clashes(messages))
    for name in DATA_MODULES:
        yield ModuleSchema(name, None, (_message_schema(name, "data"),))


def _message_schema(module_name: str, part: str) -> MessageSchema:
    by_version = dict(_kio_classes(module_name, part))
    versions = _run(module_name, list(by_version))
    flexible = [version for version, classes in by_version.items() if classes[-1].__flexible__]
    if flexible and _run(module_name, flexible).last != versions.last:
        raise SchemaConflictError(f"{module_name} {part} stops being flexible.")
    names = _merged_order(
        module_name, [[cls.__name__ for cls in classes] for classes in by_version.values()]
    )
    schemas = []
    for name in names:
        classes = {
            version: cls
            for version, version_classes in by_version.items()
            for cls in version_classes
            if cls.__name__ == name
        }
        schemas.append(_class_schema(name, classes))
    last_name = by_version[versions.last][-1].__name__
    schemas.sort(key=lambda schema: schema.name == last_name)
    return MessageSchema(
        last_name, versions, flexible[0] if flexible else None, _inner_first(schemas)
    )


def _kio_classes(module_name: str, part: str) -> Iterator[tuple[int, list[Any]]]:
    folder = Path(kio.schema.__path__[0], module_name)
    for version in sorted(int(path.name[1:]) for path in folder.glob("v*")):
        module = importlib.import_module(f"kio.schema.{module_name}.v{version}.{part}")
        yield (
            version,
            [
                value
                for value in vars(module).values()
                if dataclasses.is_dataclass(value)
                and getattr(value, "__module__", "") == module.__name__
            ],
        )


def _class_schema(name: str, classes: dict[int, Any]) -> ClassSchema:
    fields_by_version = {
        version: {field.name: field for field in dataclasses.fields(cls)}
        for version, cls in classes.items()
    }
    order = _merged_order(name, [list(fields) for fields in fields_by_version.values()])
    schemas = []
    for field_name in order:
        rows = {
            version: field_in_version(version, fields[field_name])
            for version, fields in fields_by_version.items()
            if field_name in fields
        }
        schemas.append(_merged_field(f"{name}.{field_name}", rows))
    return ClassSchema(name, tuple(schemas))


def _merged_field(name: str, rows: dict[int, FieldSchema]) -> FieldSchema:
    last = rows[max(rows)]
    for row in rows.values():
        if row[:4] != last[:4] or (row.tag is not None and row.tag != last.tag):
            raise SchemaConflictError(f"{name} changes: {row} and {last}.")
        if row.default != last.default:
            raise SchemaConflictError(f"{name} changes its default: {row} and {last}.")
    nullable = [version for version, row in rows.items() if row.nullable]
    tagged = [version for version, row in rows.items() if row.tagged]
    return last._replace(
        default=None if name in NULL_DEFAULTS else last.default,
        versions=_run(name, list(rows)),
        nullable=_run(name, nullable) if nullable else None,
        tagged=_run(name, tagged) if tagged else None,
    )


def _run(name: str, versions: Sequence[int]) -> Versions:
    if list(versions) != list(range(versions[0], versions[-1] + 1)):
        raise SchemaConflictError(f"The versions {versions} of {name} have a gap.")
    return Versions(versions[0], versions[-1])


def _merged_order(name: str, orders: Sequence[Sequence[str]]) -> list[str]:
    """One order that all the orders agree with: each next word is one that no order puts later."""
    remaining = [list(order) for order in orders]
    merged: list[str] = []
    while any(remaining):
        for order in remaining:
            if order and not any(order[0] in other[1:] for other in remaining):
                word = order[0]
                break
        else:
            raise SchemaConflictError(f"The versions of {name} disagree about its order.")
        merged.append(word)
        remaining = [[other for other in order if other != word] for order in remaining]
    return merged


def _inner_first(schemas: Sequence[ClassSchema]) -> tuple[ClassSchema, ...]:
    """Classes in an order in which each comes after the ones that its fields hold."""
    by_name = {schema.name: schema for schema in schemas}
    ordered: dict[str, ClassSchema] = {}

    def add(schema: ClassSchema) -> None:
        for field in schema.fields:
            if field.is_struct:
                add(by_name[field.kind])
        ordered.setdefault(schema.name, schema)

    for schema in schemas:
        add(schema)
    return tuple(ordered.values())


def _without_name_clashes(messages: tuple[MessageSchema, ...]) -> tuple[MessageSchema, ...]:
    """Request and response share a struct of the same name if it is the same, else both rename."""
    request, response = messages
    in_request = {schema.name: schema for schema in request.classes}
    in_response = {schema.name: schema for schema in response.classes}
    different = {
        name
        for name in in_request.keys() & in_response.keys()
        if in_request[name] != in_response[name] or request.versions != response.versions
    }
    # A struct that holds a renamed one differs by that alone.
    while True:
        more = {
            name
            for name in (in_request.keys() & in_response.keys()) - different
            if any(field.kind in different for field in in_request[name].fields)
        }
        if not more:
            break
        different |= more
    return (_renamed(request, different, "Request"), _renamed(response, different, "Response"))


def _renamed(message: MessageSchema, names: set[str], prefix: str) -> MessageSchema:
    def new_name(name: str) -> str:
        return prefix + name if name in names else name

    return message._replace(
        classes=tuple(
            ClassSchema(
                new_name(schema.name),
                tuple(
                    field._replace(kind=new_name(field.kind) if field.is_struct else field.kind)
                    for field in schema.fields
                ),
            )
            for schema in message.classes
        )
    )
