"""Kafka's own definitions of its messages: the JSON files in the jar of its Java client.

Maven fetches the jar (`headwater.testing.apache_kafka`). The definitions stay in it: what is
committed are the classes that `generate_messages` writes.
"""

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

_FOLDER: Final = "common/message/"

#: One JSON object.
Definition = dict[str, Any]


class Versions(NamedTuple):
    """A run of versions, both ends included."""

    first: int
    last: int


def message_definitions(jars: Iterable[Path]) -> dict[str, Definition]:
    """The definitions in the client's jar, which is one of `jars`, by the names of messages."""
    (jar,) = (jar for jar in jars if jar.name.startswith("kafka-clients-"))
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for path in archive.namelist():
            if path.startswith(_FOLDER) and path.endswith(".json"):
                # They have comments, which JSON has not.
                lines = archive.read(path).decode().splitlines()
                text = "\n".join(line for line in lines if not line.lstrip().startswith("//"))
                definition = json.loads(text)
                found[definition["name"]] = definition
    return found


def versions_within(text: str | None, outer: Versions) -> Versions | None:
    """The part of `outer` that a text such as "3+", "0-4", "2" or "none" names."""
    if text is None or text == "none":
        return None
    if text.endswith("+"):
        first, last = int(text[:-1]), outer.last
    else:
        first_text, _, last_text = text.partition("-")
        first, last = int(first_text), int(last_text or first_text)
    first, last = max(first, outer.first), min(last, outer.last)
    return Versions(first, last) if first <= last else None
