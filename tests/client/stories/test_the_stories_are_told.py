"""The document names the tests of each story, and the tests have these names."""

import re
from pathlib import Path

_HERE = Path(__file__).parent
_DOCUMENT = _HERE.parents[2] / "docs" / "delivery-guarantees.md"


def test_every_story_in_the_document_is_a_test_and_every_test_is_told() -> None:
    told = set(re.findall(r"`(test_[a-z0-9_]+)`", _DOCUMENT.read_text()))
    sources = [path for path in _HERE.glob("test_*.py") if path != Path(__file__)]
    tests = {
        name
        for path in sources
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(tests) > 20
    assert told == tests
