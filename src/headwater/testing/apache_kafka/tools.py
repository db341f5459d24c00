"""Apache Kafka's command line tools, each run in a Java process of its own.

`TOOLS` maps the name of a tool, which is that of its script in the release's `bin` without `kafka-`
and `.sh`, to the class that the script runs. A process start costs most of a second, so a test asks
one tool for much at once: `dump_log` takes any number of files.
"""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from headwater.base.checks import check
from headwater.java.processes import (
    Stream,
    forget_process,
    kill_process,
    start_process,
)
from headwater.testing.apache_kafka.dump import ERRORS_FOLLOW, without_false_gaps
from headwater.testing.apache_kafka.resolve import Installation, resolve

TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "jmx": "org.apache.kafka.tools.JmxTool",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}

# A tool that measures throughput needs the optimising compiler, and the larger heap that its script
# asks for.
MEASURING_FLAGS = ("-Xmx512m", "-XX:+UseG1GC")

# One argument may be 128 KiB long on Linux, and the dumper takes all files in one.
FILES_ARGUMENT_SIZE_MAX = 100_000


class ToolFailedError(Exception):
    """A tool took too long or ended with an error; the message holds what it wrote last."""


def tool_command(name: str, args: Sequence[str], kafka: Installation | None = None) -> list[str]:
    """The command line that runs the tool `name`."""
    check(name in TOOLS, "no such tool: %s; there are: %s", name, ", ".join(TOOLS))
    measures = name.endswith("-perf-test") or name == "e2e-latency"
    kafka = kafka or resolve()
    flags = MEASURING_FLAGS if measures else ("-Xmx256m", *kafka.quick_start_flags)
    return kafka.command(TOOLS[name], *args, jvm_flags=flags)


def start_tool(
    name: str,
    args: Sequence[str],
    *,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.DEVNULL,
    stderr: Stream = subprocess.DEVNULL,
    kafka: Installation | None = None,
) -> subprocess.Popen[bytes]:
    """Start the tool `name` and return; end it with `processes.kill_process`."""
    command = tool_command(name, args, kafka)
    return start_process(command, stdin=stdin, stdout=stdout, stderr=stderr)


def run_tool(
    name: str,
    args: Sequence[str],
    *,
    input: str | None = None,
    timeout_s: float = 120.0,
    check_exit: bool = True,
    kafka: Installation | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the tool `name` to its end; `ToolFailedError` if it takes too long or fails checked."""
    process = start_process(tool_command(name, args, kafka), stdin=subprocess.PIPE)
    try:
        stdout, stderr = process.communicate((input or "").encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        kill_process(process)
        stdout, stderr = process.communicate()
        raise ToolFailedError(
            f"{name} did not end within {timeout_s} s and wrote:\n{_tail(stdout + stderr)}"
        ) from None
    except BaseException:
        kill_process(process)
        raise
    forget_process(process)
    if check_exit and process.returncode != 0:
        raise ToolFailedError(
            f"{name} ended with exit code {process.returncode} and wrote:\n{_tail(stdout + stderr)}"
        )
    return subprocess.CompletedProcess(
        [name, *args], process.returncode, _text(stdout), _text(stderr)
    )


def dump_log(
    files: Sequence[Path | str],
    *flags: str,
    timeout_s: float = 120.0,
    kafka: Installation | None = None,
) -> str:
    """What the log dumper writes about `files`, first its report, then its errors.

    Read it with `parse_dump`. A dumper that fails is no exception here but a complaint there,
    because broken files are what some callers look for.
    """
    reports = []
    errors = []
    for some in _groups([str(file) for file in files]):
        args = ["--files", ",".join(some), *flags]
        result = run_tool("dump-log", args, timeout_s=timeout_s, check_exit=False, kafka=kafka)
        reports.append(result.stdout)
        errors.append(without_false_gaps(result.stderr))
        if result.returncode != 0:
            errors.append(f"dump-log ended with exit code {result.returncode}\n")
    return "".join([*reports, f"{ERRORS_FOLLOW}\n", *errors])


def _groups(files: list[str]) -> Iterator[list[str]]:
    """`files` in as few groups as fit into one argument each."""
    group: list[str] = []
    size_bytes = 0
    for file in files:
        check("," not in file, "the dumper separates files by commas: %s", file)
        length = len(file.encode()) + 1
        if group and size_bytes + length > FILES_ARGUMENT_SIZE_MAX:
            yield group
            group, size_bytes = [], 0
        group.append(file)
        size_bytes += length
    if group:
        yield group


def _text(output: bytes) -> str:
    return output.decode(errors="replace")


def _tail(output: bytes) -> str:
    return "\n".join(_text(output).splitlines()[-40:])
