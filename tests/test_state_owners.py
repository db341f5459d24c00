"""State that must not get out of step is assigned by its owner alone; others ask for it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parent.parent / "src" / "headwater"

#: By package: attributes that only the objects which have them may assign, as `self.<name>`.
_OWNED = {
    "storage": {"high_watermark", "log_end_offset", "log_start_offset"},
    "replication": {
        "high_watermark",
        "is_alone",
        "isr",
        "log_end_offset",
        "log_start_offset",
        "maximal",
        "partition_epoch",
        "proposal",
    },
}


def _assigned(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every attribute of something else than `self` that a module assigns."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        ):
            yield node.lineno, node.attr


@pytest.mark.parametrize("package", _OWNED)
def test_only_owners_assign(package: str) -> None:
    assigned = [
        f"{path.relative_to(_SOURCE)} line {line}: {name}"
        for path in sorted((_SOURCE / package).rglob("*.py"))
        for line, name in _assigned(path.read_text())
        if name in _OWNED[package]
    ]
    assert assigned == []


def test_an_assignment_from_outside_is_found() -> None:
    source = "self.isr = ()\nlog.high_watermark = 5\nself.log.log_end_offset += 1\n"
    assert list(_assigned(source)) == [(2, "high_watermark"), (3, "log_end_offset")]
