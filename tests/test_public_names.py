"""What `import headwater` offers, and how little it loads."""

import subprocess
import sys

import pytest

import headwater


@pytest.mark.parametrize("name", headwater.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(headwater, name) is getattr(headwater, name)
    assert name in dir(headwater)


def test_every_lazy_name_is_public() -> None:
    assert set(headwater._MODULES) | {"__version__"} == set(headwater.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Produser'"):
        _ = headwater.Produser  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import headwater; "
    script += "print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['headwater']"
