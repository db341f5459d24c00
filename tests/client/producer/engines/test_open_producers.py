"""Producers that nobody closes: programs that forget it, as processes of their own."""

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater import Admin, Producer, TopicPartition
from headwater.client.admin import ConfigChange, ConfigResource, OffsetTime, ResourceType
from headwater.testing.broker_process import free_port
from headwater.testing.running_broker import RunningBroker

TIMEOUT_S = 60.0

#: `ended()` tells how long the end of the program took: it is registered first, so called last.
PRELUDE = """
import asyncio, atexit, gc, multiprocessing, os, sys, threading, time

ends_s = []
atexit.register(lambda: ends_s and print(f"took {time.monotonic() - ends_s[0]:.3f}", flush=True))

from headwater import AsyncProducer, Producer, errors

address, topic = sys.argv[1:3]


def send(count, **settings):
    producer = Producer(bootstrap_servers=address, **({"linger_ms": 60_000} | settings))
    for number in range(count):
        producer.send(topic, b"%d" % number, partition=0)
    return producer


def send_more(count):
    for number in range(count):
        producer.send(topic, b"%d" % number, partition=0)


def ends():
    ends_s.append(time.monotonic())

"""


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker() as running:
        yield running


def run(program: str, address: str, topic: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", PRELUDE + textwrap.dedent(program), address, topic],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )


def end_offset(broker: RunningBroker, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        [found] = admin.list_offsets({partition: OffsetTime.LATEST}).values()
    assert not isinstance(found, Exception)
    return found.offset


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("raise KeyboardInterrupt", -2),
        ("producer = None", 0),
        # Python waits for this thread, and so for what it sends.
        ("threading.Thread(target=lambda: (time.sleep(0.2), send_more(500))).start()", 0),
        ("atexit.register(lambda: producer.send(topic, b'last', partition=0))", 0),
    ],
    ids=["ends", "exits", "interrupted", "dropped", "thread", "sends at exit"],
)
def test_the_end_of_a_program_writes_what_it_sent(
    broker: RunningBroker, ending: str, exit_code: int
) -> None:
    topic = broker.create_topic()
    ended = run(f"producer = send(1000)\n{ending}", broker.bootstrap, topic)
    assert ended.returncode == exit_code
    assert "records" not in ended.stderr
    more = 500 if "send_more" in ending else int("last" in ending)
    assert end_offset(broker, topic) == 1000 + more


def test_producers_without_a_broker_share_the_bound_and_name_the_numbers(tmp_path: Path) -> None:
    program = """
        producers = [send(1, client_id=f"p{n}", exit_flush_timeout_ms=1500) for n in range(3)]
        spooled = Producer(
            bootstrap_servers=address, spool_dir=sys.argv[3], exit_flush_timeout_ms=1500
        )
        for producer in producers:
            producer.flush()
        print("ready", flush=True)
        sys.stdin.readline()
        for producer in producers:
            for number in range(1000):
                producer.send(topic, b"lost", partition=0)
        spooled.send(topic, b"kept")
        ends()
        """
    with RunningBroker() as broker:
        topic = broker.create_topic()
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", PRELUDE + textwrap.dedent(program)),
                *(broker.bootstrap, topic, str(tmp_path)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    output, errors = process.communicate("go\n", timeout=TIMEOUT_S)
    assert process.returncode == 0
    for number in range(3):
        assert f"The producer 'p{number}' lost 1000 records that it had not written" in errors
    assert f"The spool {tmp_path} was not shipped" in errors
    assert "it still holds 1 record." in errors
    assert "Traceback" not in errors
    took_s = float(output.removeprefix("took "))
    # One bound for four producers, and something for a machine that is busy.
    assert 1.0 < took_s < 4.0
    with (
        RunningBroker() as broker,
        Producer(bootstrap_servers=broker.bootstrap, spool_dir=tmp_path) as producer,
    ):
        producer.flush(30)
        assert producer.metrics()["spool-delivered-total"] == 1


def test_no_time_at_the_end_is_still_told(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    ended = run("producer = send(7, exit_flush_timeout_ms=0)", broker.bootstrap, topic)
    assert "lost 7 records" in ended.stderr


def test_an_impatient_user_hears_what_is_lost(broker: RunningBroker) -> None:
    program = """
        import signal
        from headwater.client.producer.engines.open_producers import OPEN_PRODUCERS

        class Stuck:
            name, exit_flush_s = "stuck", 30.0
            def begin_exit(self):
                def wait(timeout_s):
                    if timeout_s:
                        signal.raise_signal(signal.SIGINT)
                    return "It was stuck."
                return wait

        OPEN_PRODUCERS.add(Stuck())
        ends()
        """
    ended = run(program, broker.bootstrap, "any")
    assert ended.stderr == "It was stuck.\n"


def test_a_spool_is_shipped_at_the_end(broker: RunningBroker, tmp_path: Path) -> None:
    topic = broker.create_topic()
    program = f"producer = send(100, spool_dir={str(tmp_path)!r}, linger_ms=1)"
    ended = run(program, broker.bootstrap, topic)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert end_offset(broker, topic) == 100
    with Producer(bootstrap_servers=broker.bootstrap, spool_dir=tmp_path) as producer:
        producer.flush(30)
        # The position is on disk too: it was closed in order.
        assert producer.metrics()["spool-delivered-total"] == 0


def test_an_open_transaction_is_aborted_and_told(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    program = """
        producer = Producer(bootstrap_servers=address, transactional_id="forgotten")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"never seen", partition=0).result(30)
        """
    ended = run(program, broker.bootstrap, topic)
    assert "The producer 'forgotten' had a transaction open when the program ended." in ended.stderr
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        described = admin.describe_transactions(["forgotten"])["forgotten"]
    assert not isinstance(described, Exception)
    assert described.state in ("CompleteAbort", "PrepareAbort")


def test_a_forked_child_neither_writes_nor_uses_what_is_the_parents(
    broker: RunningBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    program = """
        producer = send(10)
        spooled = Producer(bootstrap_servers=address, spool_dir=sys.argv[2] + "-spool")
        child = os.fork()
        if child == 0:
            for each in (producer, spooled):
                try:
                    each.send(topic, b"from the child", partition=0)
                except errors.KafkaError as error:
                    print(error, flush=True)
                each.close()
            try:
                producer.flush()
            except errors.KafkaError as error:
                print("flush:", error, flush=True)
            own = send(5)
            sys.exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    ended = run(program.replace("sys.argv[2]", repr(str(tmp_path))), broker.bootstrap, topic)
    refused = (
        "A client can only be used by the process that made it: make another one after the fork."
    )
    lines = ended.stdout.splitlines()
    assert lines == [refused, refused, f"flush: {refused}", "0"], ended.stderr
    assert end_offset(broker, topic) == 10 + 5


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_multiprocessing_writes_what_it_sent(
    broker: RunningBroker, tmp_path: Path, method: str
) -> None:
    topic = broker.create_topic()
    program = tmp_path / "program.py"
    program.write_text(
        PRELUDE
        + textwrap.dedent(
            f"""
            def work():
                global kept
                kept = send(100)

            if __name__ == "__main__":
                producer = send(10)
                child = multiprocessing.get_context({method!r}).Process(target=work)
                child.start()
                child.join()
                print(child.exitcode)
            """
        )
    )
    ended = subprocess.run(
        [sys.executable, str(program), broker.bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert ended.stdout == "0\n", ended.stderr
    assert end_offset(broker, topic) == 110


def test_a_dropped_producer_writes_what_it_has_and_ends(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    program = """
        producer = send(100)
        thread = next(each for each in threading.enumerate() if each.name.endswith("-producer"))
        producer = None
        thread.join(30)
        print(thread.is_alive())
        """
    ended = run(program, broker.bootstrap, topic, "-W", "default")
    assert ended.stdout == "False\n"
    assert "ResourceWarning: The producer 'headwater' was not closed" in ended.stderr
    assert end_offset(broker, topic) == 100


@pytest.mark.parametrize(
    ("ending", "outlook"),
    [
        ("return", "lost if its loop ends before"),
        ("kept.append(producer)", "will be lost. Close"),
        ("await producer.close()", ""),
    ],
    ids=["dropped", "loop closed", "closed"],
)
def test_an_async_producer_tells_what_it_has_not_written(
    broker: RunningBroker, ending: str, outlook: str
) -> None:
    topic = broker.create_topic()
    program = f"""
        kept = []

        async def main():
            producer = AsyncProducer(bootstrap_servers=address, linger_ms=60_000)
            await producer.start()
            for number in range(20):
                await producer.send(topic, b"%d" % number, partition=0)
            {ending}

        asyncio.run(main())
        """
    ended = run(program, broker.bootstrap, topic)
    assert ("it had 20 records to write" in ended.stderr) == bool(outlook)
    assert outlook in ended.stderr
    assert end_offset(broker, topic) == (0 if outlook else 20)


def test_a_record_that_fails_at_the_end_is_counted(broker: RunningBroker) -> None:
    topic = broker.create_topic()
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        admin.alter_configs({resource: [ConfigChange("max.message.bytes", "200")]})
    program = """
        producer = send(3)
        producer.send(topic, bytes(1000), partition=0)
        """
    ended = run(program, broker.bootstrap, topic)
    assert "lost 1 record " in ended.stderr
    assert end_offset(broker, topic) == 3


def test_nobody_at_that_address() -> None:
    program = """
        producer = Producer(bootstrap_servers=address, max_block_ms=100)
        try:
            producer.send(topic, b"x")
        except errors.KafkaError:
            ends()
        """
    ended = run(program, f"127.0.0.1:{free_port()}", "any")
    assert ended.stderr == ""
    assert float(ended.stdout.removeprefix("took ")) < 5.0
