"""`--json`: for programs, one document, or an object for each row where rows are many."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, for programs.")
]
RowsAsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print a JSON object for each row, for programs.")
]
