"""The function of a `python` step, looked for without running anything: its source is read.

Importing a module to check a file would run it, and most such modules import pyspark. So the module
is found as the import system would find it, package by package, and the text of its file parsed.
Where there is no text to read, or the name may come from `import *`, it is taken on trust.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

from headwater.base.counted import counted
from headwater.pipeline.declared.problems import listed, suggestion

#: Parameters of these names are filled in if nothing else does: the session, and the brokers.
PROVIDED: Final = ("spark", "bootstrap_servers")


class FunctionError(ValueError):
    """A sentence about a function that cannot be used."""


def check_function(
    name: str, directory: Path, inputs: Sequence[str], arguments: Mapping[str, object]
) -> None:
    """Raise `FunctionError` unless `module:function` can be called with these."""
    module, colon, function = name.partition(":")
    parts = module.split(".")
    if not colon or not all(part.isidentifier() for part in (*parts, function)):
        raise FunctionError(f"{name!r} must be written as module:function.")
    source = _source(parts, directory)
    if source is None:
        return
    path, text = source
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        detail = getattr(error, "msg", None) or str(error)
        raise FunctionError(f"{path}:{line}: the module is not Python: {detail}.") from None
    definitions = dict(_definitions(tree.body))
    if function not in definitions:
        if "*" in definitions or "__getattr__" in definitions:
            return
        functions = [
            known for known, node in definitions.items() if isinstance(node, ast.FunctionDef)
        ]
        raise FunctionError(
            f"module {module!r} has no function {function!r}{suggestion(function, functions)}"
        )
    node = definitions[function]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
        _check_call(function, node.args, inputs, arguments)


def _source(parts: Sequence[str], directory: Path) -> tuple[str, str] | None:
    """The path and text of a module; None if it has no text that can be read."""
    spec = _top_level(parts[0], directory)
    if spec is None:
        raise FunctionError(
            f"there is no module {parts[0]!r}, neither in {directory} nor where Python looks."
        )
    for depth in range(1, len(parts)):
        package = ".".join(parts[:depth])
        if spec.submodule_search_locations is None:
            raise FunctionError(f"{package!r} is a module and no package.")
        full_name = ".".join(parts[: depth + 1])
        found = PathFinder.find_spec(full_name, list(spec.submodule_search_locations))
        if found is None:
            raise FunctionError(f"package {package!r} has no module {parts[depth]!r}.")
        spec = found
    if spec.origin is None or not spec.origin.endswith(".py"):
        return None
    try:
        return spec.origin, Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise FunctionError(f"{spec.origin} cannot be read: {error}.") from None


def _top_level(name: str, directory: Path) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, [str(directory.absolute())])
    if spec is not None:
        return spec
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None)
        if spec is not None:
            return spec
    return None


def _definitions(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that a module binds, also inside of `if` and `try`; `*` for an import of all."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0], node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        yield part.id, node
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _definitions(node.body)
            yield from _definitions(getattr(node, "orelse", []))
            yield from _definitions(getattr(node, "finalbody", []))
            for handler in getattr(node, "handlers", []):
                yield from _definitions(handler.body)


def _check_call(
    function: str,
    parameters: ast.arguments,
    inputs: Sequence[str],
    arguments: Mapping[str, object],
) -> None:
    """Whether the function can be called with the inputs in order and the arguments by name."""
    positional = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    by_name = {parameter.arg for parameter in (*parameters.args, *parameters.kwonlyargs)}
    if len(inputs) > len(positional) and parameters.vararg is None:
        raise FunctionError(
            f"function {function!r} takes {_count(len(positional))}, but there "
            f"{'is' if len(inputs) == 1 else 'are'} {len(inputs)}: {listed(inputs)}."
        )
    for name in arguments:
        if name in positional[: len(inputs)]:
            raise FunctionError(f"argument {name!r} of {function!r} is an input already.")
        if name not in by_name and parameters.kwarg is None:
            advice = suggestion(name, [p for p in by_name if p not in positional[: len(inputs)]])
            raise FunctionError(f"function {function!r} has no parameter {name!r}{advice}")
    without_default = positional[: len(positional) - len(parameters.defaults)]
    required = [
        *without_default[len(inputs) :],
        *(
            parameter.arg
            for parameter, default in zip(
                parameters.kwonlyargs, parameters.kw_defaults, strict=True
            )
            if default is None
        ),
    ]
    for name in required:
        if name not in arguments and name not in PROVIDED:
            raise FunctionError(
                f"function {function!r} needs {name!r}, as one more of 'inputs' or in 'arguments'."
            )


def _count(number: int) -> str:
    return "no input" if number == 0 else counted(number, "input")
