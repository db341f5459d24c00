"""Decides what a new Spark session is given: a master, settings, and an environment for Java.

Nothing is read or started here. The rule that all of it follows: what somebody has said, by an
argument, by spark-submit or in `spark-defaults.conf`, is left alone, and only gaps are filled.

A *local* master runs everything in this machine's processes. It then listens on the loopback
address only, and shuffles into as many partitions as there are cores: Spark's default of 200 is
meant for clusters, and each partition of a stateful stream is a directory with files of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LOOPBACK: Final = "127.0.0.1"
DEFAULT_MASTER: Final = "local[*]"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

#: Spark looks into the text of an error of Python's with a regular expression that recurses for
#: each character: with Java's 1 MB the query's thread would die of a long one, and say nothing.
THREAD_STACK_SIZE: Final = "16m"

#: For every master.
GENERAL_SETTINGS: Final = {
    # A bar that is redrawn on standard error, in between of whatever else is printed there.
    "spark.ui.showConsoleProgress": "false",
    # How long a query without new data waits until it looks again. Spark's 10 ms would have it ask
    # the brokers a hundred times a second.
    "spark.sql.streaming.pollingDelay": "50ms",
    # Rows per Arrow batch on their way to Python, where every batch has a cost of its own.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # Spark looks for a free port for its web page from 4040 on, and gives up after 16 by default.
    "spark.port.maxRetries": "100",
}

#: For masters that are this machine.
LOCAL_SETTINGS: Final = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
}

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
SHUFFLE_PARTITIONS_MIN: Final = 2
SHUFFLE_PARTITIONS_MAX: Final = 16

_DEFAULT: Final = re.compile(r"\s*(?!#)([^\s=:]+)\s*[=:\s]\s*(.*)")


@dataclass(frozen=True)
class Surroundings:
    """What is known about this process before Spark starts."""

    environment: Mapping[str, str]
    #: The names and values in `spark-defaults.conf`.
    defaults: Mapping[str, str]
    #: This Python, and one that runs the same but starts sooner as a worker of Spark's, if any.
    interpreter: str
    quick_interpreter: str
    core_count: int
    #: A file that says what Spark logs, for where nobody else says so.
    log_configuration: str

    @property
    def was_submitted(self) -> bool:
        """Whether spark-submit started this process, so that Java is running already."""
        return "PYSPARK_GATEWAY_PORT" in self.environment

    @property
    def master_is_elsewhere(self) -> bool:
        """Whether spark-submit's command line or a Spark Connect server decides about it."""
        return self.was_submitted or bool(
            {"PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"} & self.environment.keys()
        )


@dataclass(frozen=True)
class SessionPlan:
    """How to start: None as master leaves it to what Spark knows by itself."""

    master: str | None
    configs: Mapping[str, str]
    environment: Mapping[str, str]

    @property
    def master_name(self) -> str:
        return self.master or "the master that spark-submit names"


def plan_session(
    master: str | None, configs: Mapping[str, str], surroundings: Surroundings
) -> SessionPlan:
    """The plan for a session with `configs`, which have the last word."""
    chosen = master or configs.get("spark.master") or surroundings.defaults.get("spark.master")
    if chosen is None and not surroundings.master_is_elsewhere:
        chosen = DEFAULT_MASTER
    local = chosen is not None and is_local(chosen)

    filled = dict(GENERAL_SETTINGS)
    if local:
        filled |= LOCAL_SETTINGS
        filled[SHUFFLE_PARTITIONS] = str(
            min(max(surroundings.core_count, SHUFFLE_PARTITIONS_MIN), SHUFFLE_PARTITIONS_MAX)
        )
    said = {**surroundings.defaults, **configs}
    given = {name: value for name, value in filled.items() if name not in said}
    given |= {name: value for name, value in configs.items() if name != "spark.master"}
    if not surroundings.was_submitted:
        options = said.get(JAVA_OPTIONS, "")
        added = _java_options(options, surroundings.log_configuration)
        if added:
            given[JAVA_OPTIONS] = " ".join(filter(None, [options, *added]))

    wanted = {"PYSPARK_PYTHON": surroundings.interpreter}
    if local:
        wanted["PYSPARK_PYTHON"] = surroundings.quick_interpreter
        # The address of Spark's web page follows this, and no setting.
        wanted["SPARK_LOCAL_IP"] = LOOPBACK
    missing = {
        name: value for name, value in wanted.items() if not surroundings.environment.get(name)
    }
    return SessionPlan(chosen, given, missing)


def _java_options(options: str, log_configuration: str) -> list[str]:
    """What is to be added to the options for Java that somebody has given."""
    added = []
    if "log4j2.configurationFile" not in options:
        added.append(f"-Dlog4j2.configurationFile={log_configuration}")
    if "-Xss" not in options:
        added.append(f"-Xss{THREAD_STACK_SIZE}")
    return added


def is_local(master: str) -> bool:
    """Whether `master` runs everything in processes of this machine, on one JVM."""
    return master == "local" or master.startswith("local[")


def parse_defaults(text: str) -> dict[str, str]:
    """The settings in a `spark-defaults.conf`: a name, white space, `=` or `:`, a value."""
    return {
        found[1]: found[2].strip()
        for line in text.splitlines()
        if (found := _DEFAULT.match(line)) is not None
    }
