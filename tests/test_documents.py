"""The documents speak of the code as it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headwater"
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_file_map_names_every_module() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    modules = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    }
    named = set(re.findall(r"^\| `([a-z_/0-9]+\.py)` \|", architecture, re.MULTILINE))
    assert modules - named == set()
    assert {name for name in named if not (SOURCE / name).exists()} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("target", ["make run", "make test"])
def test_the_readme_shows_the_two_commands(target: str) -> None:
    assert target in (ROOT / "README.md").read_text()
