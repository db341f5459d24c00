"""A broker under hostile peers: it lives, stays small, says little, and serves the others."""

import asyncio
import contextlib
import struct
from pathlib import Path

import pytest

from headwater.broker.handlers.cards.all_cards import CARDS
from headwater.sim.hostile.campaign import (
    FuzzCampaign,
    FuzzReport,
    case,
    check_health,
    check_log,
)
from headwater.sim.hostile.client import FuzzClient
from headwater.sim.hostile.frames import served_pairs
from headwater.testing.broker_process import HOST, BrokerProcess, free_port, wait_until
from headwater.wire.api_keys import INTER_BROKER_APIS, ApiKey
from headwater.wire.frames import encode_request
from headwater.wire.messages.api_versions import ApiVersionsRequest
from headwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.schema import Message
from tests.support.logs.verification import problems
from tests.support.tiers import rounds

MEBIBYTE = 1 << 20
DESCRIPTORS_OF_TOPICS = 1000
ELEMENT_COUNT = 20_000


@pytest.mark.parametrize("seed", range(rounds(1, 8)))
def test_hostile_peers_do_no_harm(tmp_path: Path, seed: int) -> None:
    # Somebody receives the metrics of clients, so that these APIs are served too.
    settings = {"metrics.listen": f"{HOST}:{free_port()}"}
    with BrokerProcess(tmp_path, settings=settings) as broker:
        descriptors_before = broker.descriptor_count()
        campaign = FuzzCampaign(broker, seed)
        report = asyncio.run(campaign.run(rounds(1000, 4000)))
        assert report.findings == []
        check_health(broker, report)
        check_log(broker, report, seed)
        # What hostile peers opened is closed; topics that they created have files open.
        wait_until(
            lambda: broker.descriptor_count() < descriptors_before + DESCRIPTORS_OF_TOPICS,
            "descriptors are freed",
        )
        if seed % 2 == 0:
            assert broker.stop() == 0
            assert problems(broker.data_dir, deep=False) == []
        else:
            broker.kill()
        # What it wrote in that time it can read again, for itself and for others.
        broker.start()
        assert asyncio.run(campaign.count_healthy_records()) == report.healthy_rounds
        check_log(broker, report, seed)


def test_half_of_the_cases_go_through_every_api_and_version() -> None:
    served = [(key, card.versions) for key, card in CARDS.items() if key not in INTER_BROKER_APIS]
    pairs = served_pairs(served)
    kinds = [case(1, 2 * number, served).kind for number in range(len(pairs))]
    assert [kind.split()[:2] for kind in kinds] == [
        [key.name, f"v{versions.lowest}"] for key, versions in pairs
    ]
    assert len({kind.partition(" ")[2].partition(" ")[2] for kind in kinds}) == 3


def test_many_peers_that_announce_much_and_send_little(tmp_path: Path) -> None:
    """A length is only a claim: memory is given for bytes that have come."""

    async def run(broker: BrokerProcess) -> FuzzReport:
        claims = []
        for number in range(100):
            client = FuzzClient(HOST, broker.port)
            await client.connect()
            await client.write(struct.pack(">i", 99 * MEBIBYTE) + bytes(number))
            claims.append(client)
        report = await FuzzCampaign(broker, 0).run(50)
        for client in claims:
            await client.end()
        return report

    with BrokerProcess(tmp_path) as broker:
        report = asyncio.run(run(broker))
        assert report.findings == []
        check_health(broker, report)


def test_peers_that_ask_and_never_read(tmp_path: Path) -> None:
    """Their answers fill the sockets; then the broker stops reading their requests."""
    frame = request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

    async def ask_until_it_blocks(broker: BrokerProcess) -> FuzzClient:
        client = FuzzClient(HOST, broker.port, timeout_s=0.5)
        await client.connect()
        with contextlib.suppress(TimeoutError):
            for _ in range(200):
                await client.write(frame * 10_000)
            raise AssertionError("the broker reads on without end")
        return client

    async def run(broker: BrokerProcess) -> FuzzReport:
        clients = await asyncio.gather(*(ask_until_it_blocks(broker) for _ in range(5)))
        report = await FuzzCampaign(broker, 0).run(50)
        for client in clients:
            client.abort()
        return report

    with BrokerProcess(tmp_path) as broker:
        report = asyncio.run(run(broker))
        assert report.findings == []
        check_health(broker, report)


def many_topics() -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"{number:x}") for number in range(ELEMENT_COUNT)]
    return MetadataRequest(topics=topics)


def many_partitions() -> ListOffsetsRequest:
    partitions = [
        ListOffsetsPartition(partition_index=number, timestamp=-1)
        for number in range(ELEMENT_COUNT)
    ]
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="fuzz-0", partitions=partitions)]
    )


def one_resource_many_times() -> DescribeConfigsRequest:
    """Each answer is a thousand times its question, so it is given once."""
    resource = DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)
    return DescribeConfigsRequest(resources=[resource] * ELEMENT_COUNT)


def test_requests_that_name_very_much_leave_others_their_turns(tmp_path: Path) -> None:
    requests = {
        ApiKey.METADATA: (9, many_topics()),
        ApiKey.LIST_OFFSETS: (7, many_partitions()),
        ApiKey.DESCRIBE_CONFIGS: (4, one_resource_many_times()),
    }

    async def ask(broker: BrokerProcess) -> list[bytes | None]:
        answers = []
        for api_key, (version, request) in requests.items():
            client = FuzzClient(HOST, broker.port, timeout_s=60.0)
            await client.connect()
            await client.write(request_frame(api_key, version, request))
            answers.append(await client.read_frame())
            await client.end()
        return answers

    async def run(broker: BrokerProcess) -> tuple[list[bytes | None], FuzzReport]:
        campaign = FuzzCampaign(broker, 0)
        asked, report = await asyncio.gather(ask(broker), campaign.run(100))
        return asked, report

    with BrokerProcess(tmp_path) as broker:
        answers, report = asyncio.run(run(broker))
        assert all(answers)
        assert report.findings == []
        check_health(broker, report)


def request_frame(api_key: ApiKey, version: int, request: Message) -> bytes:
    parts = encode_request(api_key, version, 1, "fuzz", request)
    return b"".join(part for part in parts if isinstance(part, bytes | bytearray | memoryview))
