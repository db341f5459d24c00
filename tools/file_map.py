"""Writes the file map of ARCHITECTURE.md: every module with the first sentence of its docstring.

Run `python -m tools.file_map`, which `make docs` does. The map stands between two marks, and a test
compares it with what this writes, so it cannot lag behind the code.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "headwater"
ARCHITECTURE: Final = ROOT / "ARCHITECTURE.md"
BEGIN: Final = "<!-- The file map begins: made by tools/file_map.py -->"
END: Final = "<!-- The file map ends -->"

#: In the order of the layers.
_LAYERS: Final = (
    "base",
    "wire",
    "net",
    "storage",
    "cluster",
    "replication",
    "delay",
    "coordinator",
    "audit",
    "broker",
    "balance",
    "client",
    "delivery",
    "java",
    "zookeeper",
    "pipeline",
    "cli",
    "testing",
    "sim",
)
#: Generated, one a Kafka API: naming each would tell nobody anything.
_GENERATED: Final = SOURCE / "wire" / "messages"


def render() -> str:
    """The map as Markdown, without the marks."""
    sections = [_section(folder) for layer in _LAYERS for folder in _folders(SOURCE / layer)]
    return "\n".join(section for section in sections if section)


def current() -> str:
    """The map as it stands in the document."""
    text = ARCHITECTURE.read_text()
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip("\n")


def write() -> None:
    text = ARCHITECTURE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    ARCHITECTURE.write_text(f"{before}{BEGIN}\n\n{render()}\n{END}{after}")


def _folders(layer: Path) -> Iterator[Path]:
    yield layer
    yield from sorted(path for path in layer.rglob("*") if (path / "__init__.py").exists())


def _section(folder: Path) -> str:
    name = folder.relative_to(SOURCE)
    if folder == _GENERATED:
        return (
            f"### {name}\n\nOne generated module an API, such as `{name}/metadata.py`: see "
            "`tools/generate_messages.py`.\n"
        )
    modules = [path for path in sorted(folder.glob("*.py")) if not path.name.startswith("__")]
    if not modules:
        return f"### {name}\n\n{first_sentence(folder / '__init__.py')}.\n"
    rows = [f"| `{path.relative_to(SOURCE)}` | {first_sentence(path)} |" for path in modules]
    return "\n".join([f"### {name}", "", "| File | What it is |", "|---|---|", *rows, ""])


def first_sentence(path: Path) -> str:
    """What a module says that it is."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = " ".join(docstring.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.])\s", first, maxsplit=1)[0]
    return sentence.rstrip(".").replace("|", "\\|")


if __name__ == "__main__":
    write()
