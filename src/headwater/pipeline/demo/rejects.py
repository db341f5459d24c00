"""Records that do not belong: what programs with bugs, and people, write into a shop's topics.

One of each kind, in turn. Each must be found by whoever decodes the topic with its schema, and each
for another reason: the last two kinds are whole but for a single column.
"""

from __future__ import annotations

import json
from typing import Final

_TIME: Final = "2026-03-02T09:10:00.000Z"

KINDS: Final = (
    "cut short",
    "plain text",
    "empty",
    "not UTF-8",
    "text for a number",
    "without its id",
)


def reject(number: int, topic: str) -> tuple[bytes, bytes]:
    """The key and value of the `number`th malformed record of a topic; the key tells the kind."""
    kind = KINDS[number % len(KINDS)]
    return kind.replace(" ", "-").encode(), _value(kind, _whole(number, topic))


def _whole(number: int, topic: str) -> dict[str, object]:
    """What the record should have been; its id comes first and its amount second."""
    if topic == "orders":
        return {
            "order_id": f"r-{number:06d}",
            "amount_cents": 100 + number,
            "customer_id": "c-0000",
            "category": "books",
            "quantity": 1,
            "placed_at": _TIME,
        }
    return {
        "payment_id": f"r-{number:06d}",
        "paid_cents": 100 + number,
        "order_id": f"r-{number:06d}",
        "method": "card",
        "paid_at": _TIME,
    }


def _value(kind: str, whole: dict[str, object]) -> bytes:
    id_name, amount_name, *_ = whole
    if kind == "cut short":
        return json.dumps(whole).encode()[:-20]
    if kind == "plain text":
        return f"GET /{whole[id_name]} HTTP/1.1".encode()
    if kind == "empty":
        return b""
    if kind == "not UTF-8":
        return json.dumps(whole).encode().replace(b"r-", b"\xff\xfe")
    if kind == "text for a number":
        return json.dumps(whole | {amount_name: "a lot"}).encode()
    return json.dumps({name: value for name, value in whole.items() if name != id_name}).encode()
