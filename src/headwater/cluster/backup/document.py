"""The file that metadata is exported to: one JSON document, a line for each node.

    {"format": "headwater-metadata", "version": 1, "headwater": "0.9.0", ...,
     "nodes": [
      {"path": "/brokers/topics/orders", "json": {"version": 3, ...}},
      ...
     ],
     "sha256": "..."}

Data that is JSON as brokers write it stands there as JSON, other text as `text`, the rest as
`base64`; an empty node has none of them. So a reader sees what there is, and the bytes come back
exactly. Of ephemeral nodes there are none: they belong to brokers that are alive.

`sha256` is that of everything else, so that a file which was cut off or edited by accident is
refused. Who edits it on purpose takes `sha256` out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.base.errors import ErrorCode, KafkaError
from headwater.cluster.node_documents import UNREADABLE, encode
from headwater.cluster.store.errors import InvalidPathError
from headwater.cluster.store.node_paths import ROOT, parent_of, split_path

FORMAT: Final = "headwater-metadata"
VERSION: Final = 1
#: How many broker ids can have been given out; each is counted anew by the store.
COUNTED_MAX: Final = 1_000_000
_CHECKSUM: Final = "sha256"


class DocumentError(KafkaError):
    """A file is no export of metadata, or says what cannot be; the message is a sentence."""

    code = ErrorCode.INVALID_CONFIG


@dataclass(frozen=True, slots=True)
class MetadataDocument:
    """The persistent nodes of a store, as they all were at one moment."""

    #: By path, parents in front of their children.
    nodes: Mapping[str, bytes]
    #: How many ids the store has made up for brokers that had none.
    broker_ids_given: int = 0
    #: What else the file says: who wrote it and when. Nothing goes by it.
    origin: Mapping[str, str] = field(default_factory=dict)
    #: Whether nothing changed while it was read.
    is_of_one_moment: bool = True

    @property
    def checksum(self) -> str:
        return _checksum(_as_json(self))


def encode_document(document: MetadataDocument) -> bytes:
    content = _as_json(document)
    checksum = _checksum(content)
    nodes = content.pop("nodes")
    head = ",\n ".join(f"{_text(name)}: {_text(value)}" for name, value in content.items())
    lines = ",\n  ".join(_text(node) for node in nodes)
    tail = f'"{_CHECKSUM}": "{checksum}"'
    return f'{{{head},\n "nodes": [\n  {lines}\n ],\n {tail}}}\n'.encode()


def decode_document(data: bytes) -> MetadataDocument:
    """Read a file; raises DocumentError."""
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ValueError
    except UNREADABLE:
        raise DocumentError(
            "This is no file that `headwater metadata export` has written, or a part of it is "
            "missing."
        ) from None
    if content.get("version") != VERSION:
        raise DocumentError(
            f"The file has version {content.get('version')!r} of its format, and this release of "
            f"Headwater knows {VERSION}: import it with the release that wrote it, or a later one."
        )
    checksum = content.pop(_CHECKSUM, None)
    if checksum is not None and checksum != _checksum(content):
        raise DocumentError(
            f"The file was changed after it was written: its {_CHECKSUM} is another one. Export "
            f"anew, or take {_CHECKSUM} out if you have changed it on purpose."
        )
    try:
        return _read(content)
    except (*UNREADABLE, InvalidPathError) as error:
        raise DocumentError(f"The file cannot be read: {str(error).rstrip('.')}.") from error


def _as_json(document: MetadataDocument) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        **document.origin,
        "is_of_one_moment": document.is_of_one_moment,
        "broker_ids_given": document.broker_ids_given,
        "nodes": [_node_as_json(path, data) for path, data in document.nodes.items()],
    }


def _read(content: dict[str, Any]) -> MetadataDocument:
    nodes: dict[str, bytes] = {}
    for number, node in enumerate(content["nodes"]):
        path = node.get("path")
        if not isinstance(path, str) or not split_path(path):
            raise ValueError(f"node {number} has no path")
        if path in nodes:
            raise ValueError(f"{path} is there twice")
        if (above := parent_of(path)) != ROOT and above not in nodes:
            raise ValueError(f"what is above {path} is missing, or stands behind it")
        nodes[path] = _data(path, node)
    given = content["broker_ids_given"]
    if type(given) is not int or not 0 <= given <= COUNTED_MAX:
        raise ValueError(f"{given!r} broker ids cannot have been given out")
    known = {"format", "version", "is_of_one_moment", "broker_ids_given", "nodes"}
    origin = {
        name: value
        for name, value in content.items()
        if name not in known and isinstance(value, str)
    }
    is_of_one_moment = content.get("is_of_one_moment", True) is True
    return MetadataDocument(nodes, given, origin, is_of_one_moment)


def _node_as_json(path: str, data: bytes) -> dict[str, Any]:
    node: dict[str, Any] = {"path": path}
    if not data:
        return node
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {**node, "base64": base64.b64encode(data).decode()}
    try:
        content = json.loads(text)
        if isinstance(content, dict) and encode(content) == data:
            return {**node, "json": content}
    except UNREADABLE:
        pass
    return {**node, "text": text}


def _data(path: str, node: dict[str, Any]) -> bytes:
    match node:
        case {"json": dict() as content}:
            return encode(content)
        case {"text": str() as text}:
            return text.encode()
        case {"base64": str() as text}:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error:
                raise ValueError(f"the data of {path} is no base64") from None
        case {"json": _} | {"text": _} | {"base64": _}:
            raise ValueError(f"the data of {path} has the wrong form")
    return b""


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(content).encode()).hexdigest()


def _text(content: object) -> str:
    return json.dumps(content, ensure_ascii=True)
