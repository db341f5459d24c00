"""Functions are found and their parameters checked, without anything being run."""

import sys
from pathlib import Path

import pytest

from headwater.pipeline.declared.sections.python_function import FunctionError, check_function

MODULE = """
raise RuntimeError("this module must not be run")
import pyspark
from elsewhere import imported
aliased = imported
if True:
    def conditional(frame): ...
def one(frame): ...
def two(first, second, *, rate, unit="s"): ...
def any_number(*frames, **options): ...
def with_session(frame, spark, bootstrap_servers): ...
@pyspark.decorated
def decorated(): ...
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "stars.py").write_text("from elsewhere import *\n")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError\n")
    (package / "inner.py").write_text("def f(frame): ...\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "inputs", "arguments"),
    [
        ("steps:one", ["a"], {}),
        ("steps:two", ["a", "b"], {"rate": 1}),
        ("steps:two", ["a"], {"second": 1, "rate": 1}),
        ("steps:any_number", ["a", "b", "c"], {"x": 1}),
        ("steps:with_session", ["a"], {}),
        ("steps:aliased", ["a"], {}),
        ("steps:conditional", ["a"], {}),
        ("steps:decorated", ["a"], {}),
        ("stars:whatever", ["a"], {}),
        ("package.inner:f", ["a"], {}),
        ("json:dumps", ["a"], {}),
        ("math:sqrt", ["a"], {}),
    ],
)
def test_what_can_be_called_is_taken(
    directory: Path, name: str, inputs: list[str], arguments: dict[str, object]
) -> None:
    loaded = set(sys.modules)
    check_function(name, directory, inputs, arguments)
    assert not (set(sys.modules) - loaded) & {"steps", "stars", "package", "package.inner"}


@pytest.mark.parametrize(
    ("name", "inputs", "arguments", "sentence"),
    [
        ("steps", ["a"], {}, "'steps' must be written as module:function."),
        ("a b:c", ["a"], {}, "'a b:c' must be written as module:function."),
        ("steps:on", ["a"], {}, "module 'steps' has no function 'on': did you mean 'one'?"),
        ("package.innr:f", ["a"], {}, "package 'package' has no module 'innr'."),
        ("steps.inner:f", ["a"], {}, "'steps' is a module and no package."),
        (
            "steps:one",
            ["a", "b"],
            {},
            "function 'one' takes 1 input, but there are 2: 'a' and 'b'.",
        ),
        (
            "steps:two",
            ["a", "b"],
            {},
            "function 'two' needs 'rate', as one more of 'inputs' or in 'arguments'.",
        ),
        (
            "steps:two",
            ["a", "b"],
            {"rat": 1},
            "function 'two' has no parameter 'rat': did you mean 'rate'?",
        ),
        (
            "steps:two",
            ["a", "b"],
            {"first": 1, "rate": 1},
            "argument 'first' of 'two' is an input already.",
        ),
    ],
)
def test_what_cannot_is_refused(
    directory: Path, name: str, inputs: list[str], arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(FunctionError) as error:
        check_function(name, directory, inputs, arguments)
    assert str(error.value) == sentence


def test_a_module_that_is_missing_or_no_python(directory: Path) -> None:
    with pytest.raises(FunctionError, match="there is no module 'no_such_module', neither in"):
        check_function("no_such_module:f", directory, [], {})
    with pytest.raises(FunctionError, match=r"broken\.py:2: the module is not Python"):
        check_function("broken:f", directory, [], {})
