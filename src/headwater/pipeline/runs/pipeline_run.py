"""A whole run of a declared pipeline: lock, Spark session, queries, the loop, an orderly end."""

from __future__ import annotations

import atexit
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from headwater.base.errors import KafkaError
from headwater.pipeline.declared.backfill_rules import check_backfill
from headwater.pipeline.declared.specs.pipeline import PipelineSpec
from headwater.pipeline.declared.specs.run_mode import Backfill, Continuous, Once, RunMode
from headwater.pipeline.runs.run_directory import RunDirectory
from headwater.pipeline.runs.run_record import RunRecord, RunState
from headwater.pipeline.runs.run_signals import RunSignals, StoppedAtOnce
from headwater.pipeline.runs.running_pipeline import RunningPipeline, Wish
from headwater.pipeline.runs.spark_log import LOG as SPARK_LOG
from headwater.pipeline.runs.spark_log import log_to_file
from headwater.pipeline.spark.session import look_around, require_pyspark, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.pipeline.lag.lag_reporter import LagReporter

#: Spark waits for ever by default for a query that does not end.
_STOP_TIMEOUT: Final = {"spark.sql.streaming.stopTimeout": "60s"}
_LAG_TIMEOUT_S: Final = 10.0


class SparkGoneError(KafkaError):
    """Spark ended by itself while a pipeline ran on it."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What is to be run and how."""

    spec: PipelineSpec
    mode: RunMode
    master: str | None = None


def run_pipeline(
    plan: RunPlan,
    signals: RunSignals,
    *,
    say: Callable[[str], None],
    print_rows: Callable[[str], None] = print,
) -> RunRecord:
    """Run it to its end; the record tells how that was.

    `say` is told what happens, `print_rows` gets what screens show. A pipeline that cannot start
    raises a `KafkaError` with a sentence, after the record was written.
    """
    require_pyspark()
    spec = plan.spec
    if isinstance(plan.mode, Backfill):
        # Told now, and not when Spark is up.
        check_backfill(spec)
    directory = RunDirectory(spec.state_directory / plan.mode.folder)
    with directory.locked(spec.name):
        signals.install()
        record = _first_record(plan)
        directory.write(record)
        try:
            return _run_locked(plan, directory, record, signals, say, print_rows)
        except StoppedAtOnce:
            last = directory.read() or record
            directory.write(_ended(last, RunState.STOPPED, "it was stopped at once"))
            raise
        except Exception as failure:
            last = directory.read() or record
            directory.write(_ended(last, RunState.FAILED, _sentence(failure)))
            raise
        finally:
            signals.restore()


def _run_locked(
    plan: RunPlan,
    directory: RunDirectory,
    record: RunRecord,
    signals: RunSignals,
    say: Callable[[str], None],
    print_rows: Callable[[str], None],
) -> RunRecord:
    # These take a second to import, which nobody should pay for whose file is wrong.
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.pipeline.compiled.compiled_pipeline import compile_pipeline
    from headwater.pipeline.compiled.sinks.dead_letters import query_name
    from headwater.pipeline.compiled.sinks.table_formats import fetch_sentences, session_configs
    from headwater.pipeline.compiled.spark_failures import failure_sentence
    from headwater.pipeline.lag.lag_reporter import report_lag

    spec = plan.spec
    is_own_session = not _has_session()
    configs = {**_STOP_TIMEOUT, **spec.spark, **session_configs(spec)}
    surroundings = look_around()
    if is_own_session and not surroundings.was_submitted:
        configs |= log_to_file(directory.path, configs, surroundings.defaults)
        record = replace(record, spark_log=str(directory.path.absolute() / SPARK_LOG))
    if is_own_session:
        for sentence in fetch_sentences({**surroundings.defaults, **configs}):
            say(sentence)
    spark = start_session(f"headwater {spec.name}", master=plan.master, configs=configs, say=say)
    # Spark has replaced the handler of Ctrl-C.
    signals.install()
    reporter = None
    is_orderly = True
    try:
        context = spark.sparkContext
        record = replace(record, master=str(context.master), spark_ui=context.uiWebUrl or "")
        directory.write(record)
        reporter = report_lag(spark, **_admin_settings(spec.kafka))
        say("Planning the pipeline and starting its queries.")
        compiled = compile_pipeline(spec, spark, print_rows)

        def tell_start(name: str) -> None:
            elapsed_s = time.time() - record.started_ms / 1000
            say(f"The query {name!r} has started after {elapsed_s:.1f} s.")

        queries: Sequence[Any] = compiled.start(plan.mode, tell_start)
        letters = {query_name(each): each.name for each in spec.sources if each.has_dead_letters}
        running = RunningPipeline(
            directory,
            record,
            queries,
            signals,
            lambda failure, name: failure_sentence(failure, spec, name, plan.mode),
            is_endless=lambda query: (
                isinstance(plan.mode, Continuous) and isinstance(query, StreamingQuery)
            ),
            written=compiled.written.of,
            # A query whose name another pipeline of this session has bears this one's before it.
            dead_letters=letters | {f"{spec.name}.{name}": each for name, each in letters.items()},
        )
        signals.running()
        return running.run()
    except StoppedAtOnce:
        is_orderly = False
        raise
    except (Py4JNetworkError, ConnectionError) as failure:
        if signals.wish() is not Wish.GO_ON:
            # The signal that asked for an end went to Java as well, which does not wait.
            last = _ended(directory.read() or record, RunState.STOPPED, "")
            directory.write(last)
            return last
        raise SparkGoneError(
            "Spark has ended in the middle of the run: its Java process is gone. "
            "The next run goes on where this one was."
        ) from failure
    finally:
        if is_orderly and reporter is not None:
            _close_reporter(reporter)
        if is_orderly and is_own_session:
            _close_session(spark)


def _admin_settings(kafka: Mapping[str, str]) -> dict[str, Any]:
    """Those of the pipeline's settings that every kind of client has."""
    from headwater.client.settings.common_settings import COMMON_SETTINGS

    names = {row.name for row in COMMON_SETTINGS}
    return {name: value for name, value in kafka.items() if name in names}


def _has_session() -> bool:
    """Whether there is a Spark in this process already, which is then somebody else's to end."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _close_reporter(reporter: LagReporter) -> None:
    # Without Spark or a broker what is left to commit stays so; the next run commits further.
    with suppress(Exception):
        reporter.close(_LAG_TIMEOUT_S)
    atexit.unregister(reporter.close)


def _close_session(spark: SparkSession) -> None:
    # It may be gone already: Java ended, or a signal came in the middle of a call to it.
    with suppress(Exception):
        spark.stop()


def mode_words(mode: RunMode) -> str:
    """How a record calls it."""
    if isinstance(mode, Backfill):
        return f"backfill {_moment(mode.from_ms)} to {_moment(mode.until_ms)}"
    return "once" if isinstance(mode, Once) else "continuous"


def _moment(time_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time_ms)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _first_record(plan: RunPlan) -> RunRecord:
    now_ms = time.time_ns() // 1_000_000
    spec = plan.spec
    return RunRecord(
        pipeline=spec.name,
        state=RunState.STARTING,
        pid=os.getpid(),
        host=socket.gethostname(),
        started_ms=now_ms,
        updated_ms=now_ms,
        mode=mode_words(plan.mode),
        file=str(spec.path.absolute()) if spec.path is not None else "",
        master=plan.master or "",
    )


def _ended(record: RunRecord, state: RunState, error: str) -> RunRecord:
    now_ms = time.time_ns() // 1_000_000
    return replace(record, state=state, error=error, ended_ms=now_ms, updated_ms=now_ms)


def _sentence(failure: Exception) -> str:
    if isinstance(failure, KafkaError):
        return str(failure)
    return f"unexpected {type(failure).__name__}: {' '.join(str(failure).split())[:500]}"
