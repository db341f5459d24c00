"""`headwater audit replicas`: three replicas that are the same, and one that is not."""

import json
from pathlib import Path

from headwater.cli.audit.replicas.actions import compare_topic
from headwater.cli.audit.replicas.comparison import Difference, first_difference
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.testing.running_broker import RunningBroker
from headwater.wire.cluster_messages.describe_log_checksums import ChecksumRun
from headwater.wire.records import Record, encode_batch
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.command import run_command

TIME_MS = 1_700_000_000_000


def run(offset: int, checksum: int) -> ChecksumRun:
    return ChecksumRun(from_offset=offset, to_offset=offset + 5, batch_count=1, checksum=checksum)


def test_the_first_difference_has_its_parties() -> None:
    same = [run(0, 1), run(5, 2)]
    assert first_difference({1: same, 2: same}) is None
    other = [run(0, 1), run(5, 3)]
    assert first_difference({1: same, 2: other, 3: same}) == Difference(5, 10, ((1, 3), (2,)))
    assert first_difference({1: same, 2: same[:1], 3: [run(0, 4)]}) == Difference(
        0, 5, ((1, 2), (3,))
    )
    assert first_difference({1: same, 2: same[:1]}) == Difference(5, 10, ((1,), (2,)))
    assert first_difference({1: []}) is None


def append(cluster: BrokerCluster, values: list[bytes]) -> None:
    leader = cluster.context(cluster.leader_of("orders"))
    for value in values:
        batch = encode_batch([Record(n, TIME_MS, b"k", value) for n in range(5)])
        leader.partitions.get("orders", 0).append(bytearray(batch), acks=1, now_ms=TIME_MS)


async def until_replicated(cluster: BrokerCluster, end: int) -> None:
    await cluster.until(
        lambda: all(
            server.context.partitions.get("orders", 0).log.high_watermark == end
            for server in cluster.servers.values()
        )
    )


def put_another(directory: Path, number: int) -> None:
    """Have another value in a batch of a log on disk, with a checksum that is right for it."""
    path = directory / "orders-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    size = len(encode_batch([Record(n, TIME_MS, b"k", b"%04d" % number) for n in range(5)]))
    there = data[number * size : (number + 1) * size]
    other = encode_batch([Record(n, TIME_MS, b"k", b"%04d" % 9999) for n in range(5)])
    assert len(other) == size
    there[12:] = other[12:]
    # Everything in front of the format is the leader's, so it stays.
    there[16:] = other[16:]
    data[number * size : (number + 1) * size] = there
    path.write_bytes(data)


def test_a_replica_that_differs_is_named_with_its_offsets(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1, 2, 3]])
        await cluster.until_in_sync("orders")
        append(cluster, [b"%04d" % number for number in range(40)])
        await until_replicated(cluster, 200)
        async with ClusterConnection(cluster.bootstrap) as connection:
            [equal] = await compare_topic(connection, "orders", None)
        assert (equal.replicas, equal.from_offset, equal.to_offset) == ((1, 2, 3), 0, 200)
        assert (equal.batch_count, equal.difference, equal.unasked) == (40, None, {})
        put_another(cluster.log_directory(3), 17)
        async with ClusterConnection(cluster.bootstrap) as connection:
            [found] = await compare_topic(connection, "orders", 0)
            assert found.difference == Difference(85, 90, ((1, 2), (3,)))
            # Who is away cannot be asked; the others are compared all the same.
            await cluster.stop(3)
            [rest] = await compare_topic(connection, "orders", 0)
        assert (rest.replicas, rest.difference, list(rest.unasked)) == ((1, 2), None, [3])

    run_cluster_scenario(tmp_path, scenario)


def test_the_command_says_what_it_found() -> None:
    with RunningBroker() as broker:
        where = ("-b", broker.bootstrap)
        broker.create_topic("orders", partitions=2)
        assert run_command("produce", "orders", *where, input=b"x\n").exit_code == 0
        told = run_command("audit", "replicas", "orders", *where)
        assert told.exit_code == 0, told.stderr
        assert [line.split()[-4:] for line in told.lines[2:4]] == [
            ["nothing", "to", "compare", "with"]
        ] * 2
        one = run_command("audit", "replicas", "orders:1", *where, "--json")
        [partition] = json.loads(one.stdout)["partitions"]
        assert (partition["partition"], partition["difference"]) == (1, None)
        assert run_command("audit", "replicas", "orders:7", *where).exit_code == 1
        assert run_command("audit", "replicas", "orders:x", *where).exit_code == 2
        made = run_command(
            *("topics", "create", "latest", "--config", "cleanup.policy=compact"), *where
        )
        assert made.exit_code == 0
        refused = run_command("audit", "replicas", "latest", *where)
        assert refused.exit_code == 1
        assert "latest is compacted" in refused.stdout + refused.stderr
