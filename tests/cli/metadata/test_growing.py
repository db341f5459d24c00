"""The commands of docs/growing.md take one broker and all that it has into a cluster of three: no
record, offset or transaction is lost on the way."""

from __future__ import annotations

import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from headwater import Admin, Consumer, Producer
from headwater.testing.broker_process import free_port
from tests.support.brokers.serve_process import ServeProcess
from tests.support.brokers.zookeeper import fresh_chroot, shared_zookeeper
from tests.support.command import Finished, run_command
from tests.support.logs.replica_files import difference
from tests.support.waiting import eventually

_GUIDE = Path(__file__).parents[3] / "docs" / "growing.md"
_COUNT = 300
_PARTITIONS = 3
#: What a test adds to a broker of the guide: less waiting, and not so many logs.
_SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "acks.all.flush": "off",
}


def _commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", _GUIDE.read_text(), re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


class Reader:
    """Somebody who does what the guide says, at addresses that are free."""

    def __init__(self) -> None:
        self.brokers: list[ServeProcess] = []
        self._zookeeper = shared_zookeeper().address + fresh_chroot()
        self._ports = {port: str(free_port()) for port in ("9092", "9093", "9094")}
        self._lines = iter(_commands())

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._ports['9092']}"

    def follow_to(self, beginning: str) -> list[Finished]:
        """Everything up to the line that begins so, that one included."""
        finished = []
        for line in self._lines:
            done = self._do(line)
            if done is not None:
                assert done.exit_code == 0, f"{line}: {done.stdout}{done.stderr}"
                finished.append(done)
            if line.startswith(beginning):
                return finished
        raise AssertionError(f"{_GUIDE} has no {beginning}")

    def _do(self, line: str) -> Finished | None:
        line = line.replace("127.0.0.1:2181/orders", self._zookeeper)
        for port, free in self._ports.items():
            line = line.replace(f":{port}", f":{free}")
        program, *arguments = shlex.split(line)
        if program == "mv":
            [source, target] = arguments
            shutil.move(source, target)
            return None
        assert program == "headwater"
        if arguments[0] == "zookeeper":
            return None
        if arguments[0] == "serve":
            sets = [word for each in _SETTINGS.items() for word in ("--set", "=".join(each))]
            self.brokers.append(ServeProcess(*arguments[1:], *sets))
            self.brokers[-1].wait_ready()
            return None
        if arguments[0] != "metadata":
            arguments += ["-b", self.bootstrap]
        if arguments[:2] == ["brokers", "raise-factor"] or arguments[:2] == ["brokers", "balance"]:
            arguments += ["--watch-seconds", "0"]
        return run_command(*arguments)

    def close(self) -> None:
        for broker in reversed(self.brokers):
            broker.stop()


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    reader = Reader()
    try:
        yield reader
    finally:
        reader.close()


def _values(numbers: range) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def _consumer(bootstrap: str, group: str | None) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    consumer.subscribe(["orders"])
    return consumer


def _read(consumer: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []

    def enough() -> bool:
        records = consumer.poll(0.2, max_records=count - len(found))
        found.extend(record.value or b"" for record in records)
        return len(found) >= count

    eventually(enough)
    return found


def _send(producer: Producer, numbers: range) -> None:
    for number in numbers:
        producer.send("orders", b"%d" % number, partition=number % _PARTITIONS)
    producer.flush()


def test_the_guide_takes_one_broker_into_a_cluster_and_loses_nothing(
    reader: Reader, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        reader.follow_to("headwater zookeeper")
        alone = reader.brokers[0]
        made = run_command("topics", "create", "orders", "-p", _PARTITIONS, "-b", reader.bootstrap)
        assert made.exit_code == 0, made.stderr
        plain = stack.enter_context(Producer(bootstrap_servers=reader.bootstrap))
        _send(plain, range(_COUNT))
        # A transaction is open while its broker stands alone, and is committed in the cluster.
        producer = stack.enter_context(
            Producer(
                bootstrap_servers=reader.bootstrap,
                transactional_id="payments",
                transaction_timeout_ms=600_000,
            )
        )
        producer.init_transactions()
        producer.begin_transaction()
        _send(producer, range(_COUNT, _COUNT + 30))
        group = stack.enter_context(_consumer(reader.bootstrap, "billing"))
        read = _read(group, 100)
        group.commit()

        refused = run_command("metadata", "export", "--data-dir", "headwater-data", "-o", "no.json")
        assert refused.exit_code == 1
        assert "in use by another process. Stop the broker first." in refused.stderr
        assert alone.stop()[0] == 0
        exported, checked, imported = reader.follow_to("headwater metadata import")
        assert "holds the cluster's secret" in exported.stdout
        assert "topics      3, 8 partitions" in checked.stdout
        assert "Imported metadata.json" in imported.stdout
        assert stat.S_IMODE((tmp_path / "metadata.json").stat().st_mode) == 0o600

        reader.follow_to("headwater serve --listen")
        moved = reader.brokers[1]
        assert (moved.cluster_id, moved.broker_id) == (alone.cluster_id, alone.broker_id)
        for arguments, reason in (
            ((3,), "2 are missing"),
            ((2, "nonsense"), "There is no topic nonsense"),
        ):
            early = run_command("brokers", "raise-factor", *arguments, "-b", reader.bootstrap)
            assert (early.exit_code, reason in early.stderr) == (1, True), early.stderr
        # The same group's member goes on, with the same producers beside it.
        producer.commit_transaction()
        _send(plain, range(_COUNT + 30, _COUNT + 60))
        read += _read(group, _COUNT + 60 - 100)
        assert sorted(map(int, read)) == list(range(_COUNT + 60))
        group.commit()

        done = reader.follow_to("headwater topics --describe --under-replicated")
        assert done[-1].stdout == ""
        listed = reader.follow_to("headwater brokers list")[-1]
        leaders = [int(line.split()[5]) for line in listed.lines[1:]]
        assert len(leaders) == 3 and min(leaders) > 0, listed.stdout
        with Admin(bootstrap_servers=reader.bootstrap) as admin:
            topics = admin.list_topics()
        sizes = {topic.name: {len(each.isr) for each in topic.partitions} for topic in topics}
        assert sizes == {"orders": {3}, "__consumer_offsets": {3}, "__transaction_state": {3}}
        reader.follow_to("headwater metadata export --zookeeper")
        _send(plain, range(_COUNT + 60, _COUNT + 90))
        read += _read(group, 30)
        assert sorted(map(int, read)) == list(range(_COUNT + 90))
        for partition in range(_PARTITIONS):
            name = f"orders-{partition}"
            directories = ("headwater-data", "broker-2", "broker-3")
            replicas = {at: tmp_path / each / name for at, each in enumerate(directories)}
            eventually(partial(_are_equal, replicas))


def _are_equal(replicas: dict[int, Path]) -> bool:
    return difference(replicas) is None
