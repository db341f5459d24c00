"""The documents speak of the code as it is."""

import re
from pathlib import Path

import pytest

from tools import file_map

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headwater"
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_file_map_is_what_the_modules_say() -> None:
    assert file_map.current() == file_map.render().strip("\n"), "run `make docs`"


def test_every_layer_is_in_the_file_map() -> None:
    layers = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    mapped = set(re.findall(r"^### ([a-z]+)$", file_map.render(), re.MULTILINE))
    assert layers == mapped


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("target", ["make run", "make test"])
def test_the_readme_shows_the_two_commands(target: str) -> None:
    assert target in (ROOT / "README.md").read_text()
