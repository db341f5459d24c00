"""A file that names partitions, as Kafka's kafka-leader-election.sh takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer


def read_partitions(path: str) -> dict[str, tuple[int, ...]]:
    """The partitions in a file by topic; anything odd about it is a mistake of the command line."""
    try:
        content: Any = json.loads(Path(path).read_text())
    except ValueError as error:
        raise _fault(path, f"is no JSON: {error}") from None
    rows = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        raise _fault(path, "should be an object that names partitions")
    found: dict[str, tuple[int, ...]] = {}
    for row in rows:
        match row:
            case {"topic": str(topic), "partition": int(partition)}:
                numbers = found.get(topic, ())
            case _:
                raise _fault(path, f"has a partition without topic and partition: {row}")
        if partition in numbers:
            raise _fault(path, f"names {topic}-{partition} twice")
        found[topic] = (*numbers, partition)
    return found


def _fault(path: str, what: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path} {what}", param_hint="--path-to-json-file")
