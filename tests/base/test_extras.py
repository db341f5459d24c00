"""What to install is told in one way, which is true for a clone and for a wheel."""

import re
import tomllib
from pathlib import Path

from headwater import __version__
from headwater.base import extras
from headwater.base.errors import KafkaError

ROOT = Path(__file__).parents[2]


def test_a_missing_package_is_a_sentence_and_an_import_error() -> None:
    error = extras.missing_package("A lake", "pyarrow", "spark")
    assert isinstance(error, KafkaError) and isinstance(error, ImportError)
    assert str(error) == (
        "A lake needs the Python package pyarrow: run `pip install '.[spark]'` in a clone of "
        f"Headwater, or `pip install './headwater-{__version__}-py3-none-any.whl[spark]'` with its "
        "wheel."
    )


def test_every_extra_that_the_source_names_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = project["optional-dependencies"].keys()
    texts = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    named = {
        name
        for text in texts
        for name in re.findall(r'(?:missing_package\(.*|how_to_install\()"(\w+)"\)', text)
    }
    assert named == {"arrow", "demo", "otel", "spark"} and named <= known
    # There is no such name on an index of packages.
    assert not [text for text in texts if re.search(r"pip install.{0,4}headwater\b(?!-)", text)]
