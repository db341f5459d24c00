"""A program that runs a pipeline's file once, for tests that kill it.

    python -m tests.support.spark.pipeline_run_program FILE BOOTSTRAP FOLDER

It leads a process group of its own, with Spark's Java in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from headwater.pipeline.compiled.compiled_pipeline import compile_pipeline
from headwater.pipeline.compiled.sinks.table_formats import session_configs
from headwater.pipeline.declared.pipeline_file import load_pipeline
from headwater.pipeline.declared.specs.run_mode import Once
from headwater.pipeline.spark.session import start_session
from tests.support.spark.session import SETTINGS


def main(file: str, bootstrap: str, folder: str) -> None:
    os.setpgid(0, 0)
    spec = load_pipeline(Path(file), {"bootstrap": bootstrap, "folder": folder})
    spark = start_session("run", master="local[2]", configs={**SETTINGS, **session_configs(spec)})
    for query in compile_pipeline(spec, spark).start(Once()):
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
