"""A Spark cluster on this machine: a standalone master and workers, each a process, on loopback.

    with SparkCluster(directory, worker_count=2) as cluster:
        spark = start_session("test", master=cluster.master, configs=cluster.session_configs)

They are the classes that PySpark's own scripts start, so what is tested against it holds for a
standalone cluster: executors are processes of their own, which fetch their code from the driver,
and can be killed one by one (`executor_pids`), as can the Python processes below them
(`python_worker_pids`). Memory is bounded: some 200 MB for the master and each worker, and what
`executor_memory` says for an executor.

All processes end with the block, and with this process however it ends.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Self

from headwater.java.installation import ProgramUnavailableError
from headwater.java.processes import kill_process, start_process
from headwater.java.runtime import find_runtime
from headwater.pipeline.spark.log_configuration import LOG_CONFIGURATION
from headwater.pipeline.spark.session import JAVA_VERSION_MIN, java_home
from headwater.pipeline.spark.session_plan import LOOPBACK

if TYPE_CHECKING:
    import subprocess

MASTER_CLASS: Final = "org.apache.spark.deploy.master.Master"
WORKER_CLASS: Final = "org.apache.spark.deploy.worker.Worker"
EXECUTOR_CLASS: Final = "CoarseGrainedExecutorBackend"
START_TIMEOUT_S: Final = 180.0
POLL_INTERVAL_S: Final = 0.1

_MASTER_IS_UP: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_IS_UP: Final = re.compile(r"Successfully registered with master")


class SparkClusterError(Exception):
    """A process of the cluster did not start; the message has the end of its log."""


class SparkCluster:
    """`worker_count` workers with `cores` each, and memory for as many executors of one core."""

    def __init__(
        self,
        directory: Path,
        *,
        worker_count: int = 2,
        cores: int = 1,
        executor_memory: str = "512m",
    ) -> None:
        self.directory = directory
        self.worker_count = worker_count
        self.cores = cores
        self.executor_memory = executor_memory
        self.master = ""
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []

    # -- life ------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill all processes, the workers' first; stop the session before."""
        # A process group has the worker and its executors; their Python ends with them.
        for process in reversed(self._processes):
            kill_process(process)
        self._processes.clear()
        for log in self._logs:
            log.close()
        self._logs.clear()

    @property
    def session_configs(self) -> dict[str, str]:
        """What a session on this cluster needs."""
        return {
            "spark.executor.memory": self.executor_memory,
            "spark.executor.cores": "1",
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.ui.enabled": "false",
        }

    @property
    def process_pids(self) -> list[int]:
        """The master's and the workers'."""
        return [process.pid for process in self._processes]

    # -- what runs on it -------------------------------------------------------------------------

    def executor_pids(self) -> list[int]:
        """The executors that live now, of all applications."""
        workers = {process.pid for process in self._processes[1:]}
        return [
            pid
            for pid, parent, command in _processes()
            if parent in workers and EXECUTOR_CLASS in command
        ]

    def python_worker_pids(self) -> list[int]:
        """The Python processes that run tasks now, without those that only start others."""
        executors = set(self.executor_pids())
        found = [entry for entry in _processes() if "pyspark" in entry[2]]
        starters = {pid for pid, parent, _ in found if parent in executors}
        return [pid for pid, parent, _ in found if parent in starters]

    # -- starting --------------------------------------------------------------------------------

    def _start_all(self) -> None:
        self.master = self._await("master", self._start("master", MASTER_CLASS, []), _MASTER_IS_UP)
        memory = f"{self._executor_megabytes() * self.cores}m"
        options = ["--cores", str(self.cores), "--memory", memory]
        workers = [f"worker-{number}" for number in range(self.worker_count)]
        started = [
            self._start(
                name,
                WORKER_CLASS,
                [*options, "--work-dir", str(self.directory / name), self.master],
            )
            for name in workers
        ]
        for name, process in zip(workers, started, strict=True):
            self._await(name, process, _WORKER_IS_UP)

    def _executor_megabytes(self) -> int:
        """An executor takes more than its heap: at least 384 MB of it."""
        match = re.fullmatch(r"(\d+)([mg])", self.executor_memory)
        if match is None:
            raise ValueError(f"The memory of an executor is 512m or 1g, not {self.executor_memory}")
        return int(match[1]) * (1024 if match[2] == "g" else 1) + 512

    def _start(self, name: str, main_class: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        """Start a process, which writes its log to a file of its name."""
        environment = {
            "JAVA_HOME": str(_java_home()),
            "SPARK_HOME": str(_spark_home()),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "192m",
            # A killed executor is replaced, however often that happens.
            "SPARK_DAEMON_JAVA_OPTS": "-Dspark.deploy.maxExecutorRetries=-1 "
            f"-Dlog4j2.configurationFile={self._log_configuration()}",
        }
        settings = [f"{key}={value}" for key, value in environment.items()]
        script = [str(_spark_home() / "bin" / "spark-class"), main_class]
        address = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        log = self._log_file(name).open("wb")
        self._logs.append(log)
        process = start_process(
            ["/usr/bin/env", *settings, *script, *address, *arguments], stdout=log, stderr=log
        )
        self._processes.append(process)
        return process

    def _await(self, name: str, process: subprocess.Popen[bytes], is_up: re.Pattern[str]) -> str:
        """Wait until the process's log says what `is_up` looks for, and return what it found."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while True:
            text = self._log_file(name).read_text(errors="replace")
            if found := is_up.findall(text):
                return str(found[0])
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise SparkClusterError(f"Spark's {name} did not start:\n{text[-2000:]}")
            time.sleep(POLL_INTERVAL_S)

    def _log_file(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _log_configuration(self) -> Path:
        """Master and workers say that they are up in lines that are not errors."""
        path = self.directory / "log4j2.properties"
        path.write_text(
            f"{LOG_CONFIGURATION}logger.deploy.name = org.apache.spark.deploy\n"
            "logger.deploy.level = info\n"
        )
        return path


def _processes() -> Iterator[tuple[int, int, str]]:
    """The id, the parent's id and the command line of every process of this machine."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (OSError, UnicodeDecodeError):
                # It has ended meanwhile.
                continue
            # The name in brackets may hold anything; state and parent follow it.
            yield int(entry.name), int(status.rpartition(")")[2].split()[1]), command


def _spark_home() -> Path:
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise ProgramUnavailableError("A Spark cluster needs the Python package pyspark.")
    return Path(os.environ.get("SPARK_HOME") or Path(package.origin).parent)


def _java_home() -> Path:
    return java_home(find_runtime("Spark", JAVA_VERSION_MIN))
