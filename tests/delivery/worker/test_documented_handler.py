"""The handler that docs/retry-guide.md shows does its work once, however often it runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headwater.client.consumer.record import ConsumerRecord
from headwater.wire.records import Header, TimestampType

_GUIDE = Path(__file__).parents[3] / "docs" / "retry-guide.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VALUE = b'{"customer": "ann", "total": 30}'


def _record(topic: str, offset: int, *headers: Header) -> ConsumerRecord:
    kind = TimestampType.CREATE_TIME
    return ConsumerRecord(topic, 0, offset, 0, kind, b"ann", _VALUE, headers, 0)


def test_an_idempotent_handler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    [program] = _PYTHON.findall(_GUIDE.read_text())
    exec(program, names)
    database = names["database"]
    database.execute("INSERT INTO accounts VALUES ('ann', 100)")
    charge = names["charge"]
    for record in (
        _record("orders", 7),
        _record("orders", 7),
        _record("retry.billing", 99, ("headwater-origin", b"orders-0@7")),
    ):
        charge(record)
    assert database.execute("SELECT balance FROM accounts").fetchone() == (70,)
    charge(_record("orders", 8))
    assert database.execute("SELECT balance FROM accounts").fetchone() == (40,)
    database.close()
