"""What is installed with Headwater: the package by which Spark finds the format, and its data."""

import subprocess
import sys
import tomllib
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src"


def test_every_directory_with_code_is_a_package() -> None:
    """What is installed is what setuptools finds: directories with an `__init__.py`."""
    with_code = {path.parent for path in SOURCE.glob("*/**/*.py")}
    assert SOURCE / "pyspark_headwater" in with_code
    assert [each for each in sorted(with_code) if not (each / "__init__.py").exists()] == []


def test_built_in_pipelines_are_listed_as_data_of_the_package() -> None:
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["headwater"]
    listed = {path for pattern in patterns for path in (SOURCE / "headwater").glob(pattern)}
    assert {*(SOURCE / "headwater").glob("**/*.yaml")} <= listed


def test_importing_the_command_or_the_pipeline_package_does_not_load_spark() -> None:
    program = (
        "import sys, headwater, headwater.cli.app, headwater.pipeline\n"
        "print([name for name in ('pyspark', 'pyarrow', 'yaml', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
