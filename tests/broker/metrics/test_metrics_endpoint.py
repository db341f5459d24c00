"""Metrics over HTTP."""

import asyncio
from collections.abc import Iterator

from headwater.base.background_tasks import BackgroundTasks
from headwater.broker.metrics.health import BrokerHealth
from headwater.broker.metrics.metrics_endpoint import MetricsEndpoint


def well() -> BrokerHealth:
    return BrokerHealth(BackgroundTasks())


async def get(port: int, path: str) -> tuple[str, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return head, body


def test_the_report_is_served_and_nothing_else() -> None:
    async def scenario() -> None:
        endpoint = await MetricsEndpoint.start("127.0.0.1:0", well(), lambda: ["a 1\n", "b 2\n"])
        head, body = await get(endpoint.port, "/metrics")
        assert body == "a 1\nb 2\n"
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
        head, _ = await get(endpoint.port, "/")
        assert head.startswith("HTTP/1.1 404")
        endpoint.close()

    asyncio.run(scenario())


def test_those_who_ask_at_once_share_a_report() -> None:
    made: list[int] = []

    def pieces() -> Iterator[str]:
        made.append(1)
        for number in range(50):
            yield f"x{number} 1\n"

    async def scenario() -> None:
        endpoint = MetricsEndpoint(well(), pieces)
        answers = await asyncio.gather(*(endpoint.answer("/metrics") for _ in range(10)))
        assert len({answer.body for answer in answers if answer}) == 1
        assert len(made) == 1
        await endpoint.answer("/metrics")
        assert len(made) == 2

    asyncio.run(scenario())


def test_others_have_turns_while_a_report_is_made() -> None:
    async def scenario() -> None:
        endpoint = MetricsEndpoint(well(), lambda: (f"x{number} 1\n" for number in range(100)))
        making = asyncio.create_task(endpoint.answer("/metrics"))
        turns = 0
        while not making.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 100

    asyncio.run(scenario())


def test_a_report_that_fails_is_told_and_the_next_is_tried_again() -> None:
    fails = [True]

    def pieces() -> Iterator[str]:
        if fails.pop() if fails else False:
            raise RuntimeError("no figures")
        yield "x 1\n"

    async def scenario() -> None:
        endpoint = await MetricsEndpoint.start("127.0.0.1:0", well(), pieces)
        head, _ = await get(endpoint.port, "/metrics")
        assert head.startswith("HTTP/1.1 500")
        assert (await get(endpoint.port, "/metrics"))[1] == "x 1\n"
        endpoint.close()

    asyncio.run(scenario())
