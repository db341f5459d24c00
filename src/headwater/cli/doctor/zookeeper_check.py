"""What `headwater doctor` asks the ZooKeeper of a cluster: whether each server serves, and as what.

A server says that to the word `srvr`, which it understands without any setting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from headwater.cli.doctor.findings import Finding, good, note, problem

SUBJECT: Final = "zookeeper"
_WORD: Final = b"srvr"
_ANSWER_BYTES_MAX: Final = 65_536
_DEFAULT_PORT: Final = 2181


class ServerAnswer(NamedTuple):
    """How a server is doing: its mode, or why there is none."""

    address: str
    mode: str | None
    reason: str = ""


def server_addresses(connect: str) -> list[tuple[str, int]]:
    """The servers of `zookeeper.connect`."""
    servers = connect.partition("/")[0].split(",")
    addresses = []
    for server in servers:
        host, colon, port = server.strip().rpartition(":")
        addresses.append((host.strip("[]"), int(port)) if colon else (port, _DEFAULT_PORT))
    return addresses


async def check_zookeeper(connect: str, timeout_s: float) -> list[Finding]:
    """All servers that the brokers were told of, and whether enough of them serve."""
    asked = [_ask(host, port, timeout_s) for host, port in server_addresses(connect)]
    return judge(await asyncio.gather(*asked))


def judge(answers: Sequence[ServerAnswer]) -> list[Finding]:
    """A finding for each server, and one for an ensemble that has no majority."""
    findings = [
        good(SUBJECT, f"{each.address} serves ({each.mode}).")
        if each.mode is not None
        else problem(SUBJECT, f"{each.address} does not serve: {each.reason}.")
        for each in answers
    ]
    serving = [each for each in answers if each.mode is not None]
    if serving and all(each.mode == "standalone" for each in serving):
        findings.append(
            note(SUBJECT, "It is one server without others: if it is lost, so is the cluster.")
        )
    elif 2 * len(serving) <= len(answers):
        findings.append(
            problem(
                SUBJECT,
                f"{len(serving)} of {len(answers)} servers serve, which is no majority: leaders "
                "cannot be elected, and nothing can be changed.",
            )
        )
    return findings


async def _ask(host: str, port: int, timeout_s: float) -> ServerAnswer:
    address = f"{host}:{port}"
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_WORD)
                text = (await reader.read(_ANSWER_BYTES_MAX)).decode(errors="replace")
            finally:
                writer.close()
    except TimeoutError:
        return ServerAnswer(address, None, f"no answer within {timeout_s:g} s")
    except OSError as error:
        return ServerAnswer(address, None, error.strerror or str(error))
    modes = [line.partition(": ")[2] for line in text.splitlines() if line.startswith("Mode: ")]
    if modes:
        return ServerAnswer(address, modes[0])
    return ServerAnswer(address, None, text.strip().rstrip(".") or "it closed the connection")
