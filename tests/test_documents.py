"""The documents speak of the code as it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import file_map

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headwater"
#: Pages that tell in code which files to open.
GUIDES = [ROOT / "CONTRIBUTING.md", ROOT / "tests" / "README.md"]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    *GUIDES,
    *sorted((ROOT / "docs").glob("*.md")),
]

_FOLDERS = (".ci", "bench", "docs", "src", "tests", "tools")
_CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
_FILE = re.compile(r"[\w./<>*-]+\.(?:md|py|toml|txt|yaml)")


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


def _named_paths(text: str) -> Iterator[str]:
    """What looks like a file or folder of the repository, wherever the text shows code."""
    for code in _CODE.findall(text):
        for word in code.strip("`").split():
            path = word.strip("\"'(),;:").partition("::")[0]
            if path.split("/")[0] in _FOLDERS or _FILE.fullmatch(path):
                yield path


def _missing_paths(text: str) -> list[str]:
    """Paths that are named and do not exist.

    A path begins at the root, and `<name>` in it stands for any name. A file may be named without
    its folder where the same paragraph names that folder, or another file in it.
    """
    missing = []
    for paragraph in text.split("\n\n"):
        paths = [re.sub("<[^<>]*>", "*", path) for path in _named_paths(paragraph)]
        folders = {path.rpartition("/")[0] for path in paths}
        for path in paths:
            places = {""} if "/" in path else {"", *folders}
            if not any(any(ROOT.glob(f"{place}/{path}".strip("/"))) for place in places):
                missing.append(path)
    return missing


def test_the_file_map_is_what_the_modules_say() -> None:
    assert file_map.current() == file_map.render().strip("\n"), "run `make docs`"


def test_every_layer_is_in_the_file_map() -> None:
    layers = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    mapped = set(re.findall(r"^### ([a-z]+)$", file_map.render(), re.MULTILINE))
    assert layers == mapped


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", GUIDES, ids=_name)
def test_what_the_guides_name_is_there(document: Path) -> None:
    text = document.read_text()
    assert _missing_paths(text) == []
    assert len(list(_named_paths(text))) > 60


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Open `src/headwater/broker/severs.py`.", ["src/headwater/broker/severs.py"]),
        ("Open `src/headwater/brokers/`.", ["src/headwater/brokers/"]),
        ("Run `pytest -q tests/nowhere/test_x.py::test_y`.", ["tests/nowhere/test_x.py"]),
        ("```\npytest tests/nowhere\n```", ["tests/nowhere"]),
        ("Add `src/headwater/handlers/<name>.py`.", ["src/headwater/handlers/*.py"]),
        ("In `src/headwater/sim/disk/`: `flauts.py`.", ["flauts.py"]),
        ("It is in `src/headwater/sim/disk/`.\n\nOpen `faults.py`.", ["faults.py"]),
    ],
)
def test_a_wrong_path_is_found(text: str, missing: list[str]) -> None:
    assert _missing_paths(text) == missing


@pytest.mark.parametrize(
    "text",
    [
        "`README.md`, `tests/test_layers.py`, `src/headwater/sim/`, `pytest -q tests/net`",
        "`src/headwater/broker/handlers/<name>.py`, `src/headwater/cli/<command>/`",
        "In `src/headwater/sim/disk/`: `faults.py`.",
        "Beside `src/headwater/sim/disk/faults.py`: `faulty_disk.py`.",
        "`.venv/bin/pytest`, `/metrics`, `acks=all`, `a / b`, `log.roll.ms`, `headwater.sim`",
        "No code: src/headwater/nowhere.py",
    ],
)
def test_right_paths_and_other_code_are_not(text: str) -> None:
    assert _missing_paths(text) == []


def test_the_index_names_every_page() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    index = (ROOT / "docs" / "README.md").read_text()
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages


@pytest.mark.parametrize("target", ["make run", "make test"])
def test_the_readme_shows_the_two_commands(target: str) -> None:
    assert target in (ROOT / "README.md").read_text()
