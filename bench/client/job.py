"""The process in which one client does one run: `python -m bench.client.job NAME LOAD`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bench import job_process
from bench.client import (
    aiokafka_client,
    confluent_client,
    headwater_client,
    kafka_python_client,
    wire_alone,
)
from bench.client.load import Load

JOBS: dict[str, Callable[[Load], dict[str, float]]] = {
    **headwater_client.JOBS,
    **kafka_python_client.JOBS,
    **aiokafka_client.JOBS,
    **confluent_client.JOBS,
    **wire_alone.JOBS,
}


def run_client(name: str, load: Load) -> dict[str, float]:
    """Let that client do its run, in a process of its own."""
    result: dict[str, float] = job_process.run_job("bench.client.job", name, **load.as_json())
    return result


def _do(name: str, **arguments: Any) -> dict[str, float]:
    return JOBS[name](Load(**arguments))


if __name__ == "__main__":
    job_process.answer({name: partial(_do, name) for name in JOBS})
