"""Spark: the data source and sink behind `format("headwater")`, and declared pipelines.

    from headwater.pipeline import report_lag, start_session

Names are imported when they are first used, because PySpark takes a second to load.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.pipeline.lag.lag_reporter import LagReporter, report_lag
    from headwater.pipeline.spark.errors import SparkUnavailableError
    from headwater.pipeline.spark.session import start_session

_MODULE_BY_NAME = {
    "LagReporter": "lag.lag_reporter",
    "SparkUnavailableError": "spark.errors",
    "report_lag": "lag.lag_reporter",
    "start_session": "spark.session",
}

__all__ = ["LagReporter", "SparkUnavailableError", "report_lag", "start_session"]


def __getattr__(name: str) -> object:
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__
