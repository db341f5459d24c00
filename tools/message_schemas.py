"""Kafka's messages as Headwater has them: which there are, and the classes and fields of each.

A definition of Kafka's describes all versions of a message at once: a field knows in which versions
it exists, in which it may be null and in which it is tagged. Here that becomes rows for the classes
that `generate_messages` writes. What does not fit them raises `SchemaConflictError`, so that
nothing is lost without notice when Kafka moves on.
"""

import builtins
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tools.message_definitions import Definition, Versions, versions_within

# Share groups, Kafka Streams' groups and the Raft quorum are outside what Headwater speaks.
SKIPPED_WORDS: Final = frozenset({"share", "streams", "voter", "vote", "epoch", "snapshot"})
SKIPPED: Final = frozenset({"unregister_controller"})
KEPT_ANYWAY: Final = frozenset({"offset_for_leader_epoch"})
DATA_MESSAGES: Final = ("ConsumerProtocolAssignment", "ConsumerProtocolSubscription")

_IMPLICIT_DEFAULTS: Final[dict[str, object]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": uuid.UUID(int=0),
}
_WORD_STARTS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class SchemaConflictError(Exception):
    """A message cannot be described as one class."""


class EmptyList:
    """The default of an array: a new list for each message."""


class NewStruct:
    """The default of a struct: a new one for each message."""


class FieldSchema(NamedTuple):
    """One field; `kind` is a Kafka type, or the name of a nested class."""

    name: str
    kind: str
    is_struct: bool
    is_array: bool
    versions: Versions
    nullable: Versions | None
    tag: int | None
    tagged: Versions | None
    default: object


class ClassSchema(NamedTuple):
    """One message, or one struct inside a message."""

    name: str
    fields: tuple[FieldSchema, ...]


class MessageSchema(NamedTuple):
    """One message with its structs, inner ones first; the message itself comes last."""

    name: str
    versions: Versions
    flexible_since: int | None
    classes: tuple[ClassSchema, ...]


class ModuleSchema(NamedTuple):
    """The messages of one API (request, then response), or one data message."""

    name: str
    api_key: int | None
    messages: tuple[MessageSchema, ...]


def module_schemas(definitions: Mapping[str, Definition]) -> Iterator[ModuleSchema]:
    """All modules that Headwater has, APIs by key first."""
    requests = [
        each
        for each in definitions.values()
        # An API that was removed keeps its definition, and its number.
        if each["type"] == "request" and each["validVersions"] != "none"
    ]
    for request in sorted(requests, key=lambda each: int(each["apiKey"])):
        api_name = str(request["name"]).removesuffix("Request")
        name = _snake_case(api_name)
        if _is_kept(name):
            messages = tuple(
                _message_schema(definitions[api_name + part]) for part in ("Request", "Response")
            )
            yield ModuleSchema(name, request["apiKey"], _without_name_clashes(messages))
    for name in DATA_MESSAGES:
        yield ModuleSchema(_snake_case(name), None, (_message_schema(definitions[name]),))


def _is_kept(name: str) -> bool:
    is_skipped = name in SKIPPED or bool(SKIPPED_WORDS & set(name.split("_")))
    return name in KEPT_ANYWAY or not is_skipped


def _message_schema(definition: Definition) -> MessageSchema:
    name = definition["name"]
    first, _, last = definition["validVersions"].partition("-")
    valid = Versions(int(first), int(last or first))
    flexible = versions_within(definition["flexibleVersions"], valid)
    if flexible and flexible.last != valid.last:
        raise SchemaConflictError(f"{name} stops being flexible.")
    shared = {struct["name"]: struct for struct in definition.get("commonStructs", [])}
    classes: dict[str, ClassSchema] = {}

    def add(name: str, struct: Definition, versions: Versions) -> None:
        """Add the class of a message or struct, after those of the structs in it."""
        schemas = []
        for field in struct["fields"]:
            if within := versions_within(field["versions"], versions):
                schema = _field_schema(field, within)
                schemas.append(schema)
                if common := shared.get(schema.kind):
                    # Several fields hold it, each in versions of its own.
                    add(schema.kind, common, versions_within(common["versions"], valid) or valid)
                elif schema.is_struct:
                    add(schema.kind, field, within)
        found = ClassSchema(name, tuple(schemas))
        if classes.setdefault(name, found) != found:
            raise SchemaConflictError(f"{name} is defined twice.")

    add(name, definition, valid)
    return MessageSchema(name, valid, flexible.first if flexible else None, tuple(classes.values()))


def _field_schema(field: Definition, versions: Versions) -> FieldSchema:
    kind = field["type"].removeprefix("[]")
    is_array = kind != field["type"]
    is_struct = kind[0].isupper()
    tagged = versions_within(field.get("taggedVersions"), versions)
    return FieldSchema(
        name=_field_name(field["name"]),
        kind=kind,
        is_struct=is_struct,
        is_array=is_array,
        versions=versions,
        nullable=versions_within(field.get("nullableVersions"), versions),
        tag=field["tag"] if tagged else None,
        tagged=tagged,
        default=_default(field, kind, is_struct, is_array),
    )


def _default(field: Definition, kind: str, is_struct: bool, is_array: bool) -> object:
    text = field.get("default")
    if text == "null":
        return None
    if is_array or is_struct:
        if text is not None:
            raise SchemaConflictError(f"{field['name']} has the default {text!r}.")
        return EmptyList if is_array else NewStruct
    if text is None or text == "":
        return _IMPLICIT_DEFAULTS[kind]
    if kind == "string":
        return str(text)
    if kind == "bool":
        return text in ("true", True)
    if "int" not in kind:
        raise SchemaConflictError(f"{field['name']} has the default {text!r}.")
    return int(str(text), 0)


def _field_name(name: str) -> str:
    """As Kafka calls it, but with an underscore behind a name that Python has for itself."""
    plain = _snake_case(name)
    return f"{plain}_" if hasattr(builtins, plain) else plain


def _snake_case(name: str) -> str:
    return _WORD_STARTS.sub("_", name).lower()


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
