"""What `--json` prints: one document for programs, an object with names in snake case.

What fails is told in a sentence on standard error as ever, and where a document has an entry for
each thing that was asked for, the entry of one that failed says so too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from headwater.base.errors import KafkaError


def print_document(document: Mapping[str, object]) -> None:
    """Print it, indented, as the whole of the output."""
    print(json.dumps(document, ensure_ascii=False, indent=2))


def failure_fields(error: KafkaError) -> dict[str, object]:
    """What the entry of something that failed has: Kafka's name of the error, and the sentence."""
    return {"error": error.code.name, "message": str(error)}
