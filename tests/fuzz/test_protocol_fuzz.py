"""A broker under hostile peers: it lives, stays small, says little, and serves the others."""

import asyncio
import struct
from pathlib import Path

import pytest

from tests.support.broker_process import HOST, BrokerProcess, wait_until
from tests.support.fuzz_campaign import FuzzCampaign, FuzzReport
from tests.support.fuzz_client import FuzzClient
from tests.support.tiers import rounds
from tests.support.verification import problems

MEBIBYTE = 1 << 20
RESIDENT_BYTES_MAX = 200 * MEBIBYTE
#: On a machine that is busy with other things too.
ROUND_S_MAX = 5.0
DESCRIPTORS_OF_TOPICS = 1000


@pytest.mark.parametrize("seed", range(rounds(1, 20)))
def test_hostile_peers_do_no_harm(tmp_path: Path, seed: int) -> None:
    with BrokerProcess(tmp_path) as broker:
        descriptors_before = broker.descriptor_count()
        campaign = FuzzCampaign(broker, seed)
        report = asyncio.run(campaign.run(rounds(1500, 5000)))
        assert report.findings == []
        check_health(broker, report)
        check_log(broker, report, seed)
        # What hostile peers opened is closed; topics that they created have files open.
        wait_until(
            lambda: broker.descriptor_count() < descriptors_before + DESCRIPTORS_OF_TOPICS,
            "descriptors are freed",
        )
        assert broker.stop() == 0
        assert problems(broker.data_dir, deep=False) == []
        # What it wrote in that time it can read again, for itself and for others.
        broker.start()
        assert asyncio.run(campaign.count_healthy_records()) == report.healthy_rounds
        check_log(broker, report, seed)


def check_log(broker: BrokerProcess, report: FuzzReport, seed: int) -> None:
    output = broker.output.read_text(errors="replace")
    assert "Traceback" not in output, f"seed {seed}:\n{broker.tail()}"
    assert len(output.splitlines()) <= report.case_count + 100, "more than a line for each peer"


def check_health(broker: BrokerProcess, report: FuzzReport) -> None:
    assert broker.is_running
    assert report.healthy_rounds > 10
    assert report.slowest_round_s < ROUND_S_MAX
    assert report.resident_bytes_max < RESIDENT_BYTES_MAX


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
