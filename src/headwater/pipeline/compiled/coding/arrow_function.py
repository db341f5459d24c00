"""A Python function over Arrow arrays as a function of columns, typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType


def arrow_function(
    function: Callable[[pa.Array], pa.Array], result: DataType
) -> Callable[[Column], Column]:
    """What gives a column of type `result`; `function` sees a batch's values at once."""
    # Spark takes the kind of function from its type hints; its own stubs want it said.
    made: Callable[[Column], Column] = cast(Any, arrow_udf)(function, result)
    return made
