"""Restarts brokers one after the other, and goes on only when everything is in sync again.

What restarts a broker is the operator's own command. Whether it did is seen by a connection that
was opened before, which no restart outlives: so a command that returns at once, or does nothing,
is not taken for a restart that is over. A broker is done when it answers again, all that were there
are there, and every partition has all replicas in sync. The controller comes last, so that it moves
once. In the end preferred leaders lead again. The first thing that goes wrong ends it: it is better
to have one broker down than two.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, NamedTuple

from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import listed
from headwater.cli.brokers.restart_check import RestartCheck, check_restart
from headwater.cli.cluster.partition_health import PartitionHealth, find_topics, without_added
from headwater.cli.cluster.told import ANSWER_S, log_directories, told
from headwater.client.admin import (
    BrokerOperations,
    ClusterDescription,
    ElectionOperations,
)
from headwater.client.connection.cluster_connection import ClusterConnection
from headwater.client.connection.cluster_metadata import BrokerNode
from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.api_versions import ApiVersionsRequest

_LOOK_S: Final = 0.5
_NAMED_MAX: Final = 3

Tell = Callable[[str], None]
Restart = Callable[[BrokerNode], Awaitable[None]]


class RestartOptions(NamedTuple):
    #: Which brokers; None for all.
    broker_ids: Collection[int] | None
    #: How long a broker may take, from the command to the last replica in sync.
    timeout_s: float
    #: Whether it goes on where partitions are out of use meanwhile, having no other replica.
    may_take_away: bool = False


class RestartStoppedError(KafkaError):
    """A rolling restart that ended before its end; the sentence says at which broker, and why."""

    code = ErrorCode.REQUEST_TIMED_OUT


async def restart_all(
    connection: ClusterConnection, restart: Restart, options: RestartOptions, tell: Tell
) -> None:
    """Restart the brokers; RestartStoppedError at the first trouble."""
    cluster = await BrokerOperations(connection).describe_cluster()
    left = chosen(cluster, options.broker_ids)
    count, present = len(left), {node.broker_id for node in cluster.brokers}
    for number in range(count):
        cluster = await BrokerOperations(connection).describe_cluster()
        node = next_of(left, cluster.controller_id)
        left.remove(node)
        broker_id = node.broker_id
        check = await check_restart(connection, broker_id)
        if _stops(check, options):
            raise RestartStoppedError(_ended(left, node, " ".join(check.sentences())))
        role = ", the controller" if broker_id == cluster.controller_id else ""
        tell(f"[{number + 1}/{count}] Broker {broker_id} ({node.address}{role}) is restarted.")
        await _restart_one(connection, node, restart, present, options, left, tell)
    await _give_leaders_back(connection, tell)
    tell(f"Done: {counted(count, 'broker')} restarted, and every replica is in sync.")


async def preview(
    connection: ClusterConnection, describe: Callable[[BrokerNode], str], options: RestartOptions
) -> list[str]:
    """What `restart_all` would do: the brokers in their order, and what speaks against it."""
    cluster = await BrokerOperations(connection).describe_cluster()
    left, lines = chosen(cluster, options.broker_ids), []
    while left:
        node = next_of(left, cluster.controller_id)
        left.remove(node)
        check = await check_restart(connection, node.broker_id)
        lines.append(f"Broker {node.broker_id} ({node.address}): {describe(node)}")
        if check.hurts:
            verdict = "would end here" if _stops(check, options) else "would go on"
            lines += [f"  {verdict}: {sentence}" for sentence in check.sentences()]
    return lines


def chosen(cluster: ClusterDescription, broker_ids: Collection[int] | None) -> list[BrokerNode]:
    """The brokers that are named, by id; KafkaError for one that is not there."""
    nodes = {node.broker_id: node for node in cluster.brokers}
    unknown = sorted(set(broker_ids or ()) - nodes.keys())
    if unknown:
        raise KafkaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"There is no live broker {listed(unknown)}; the cluster has {listed(sorted(nodes))}.",
        )
    return [nodes[each] for each in sorted(nodes if broker_ids is None else set(broker_ids))]


def next_of(left: Sequence[BrokerNode], controller_id: int) -> BrokerNode:
    """The first that is not the controller, which comes when no other is left."""
    return next((node for node in left if node.broker_id != controller_id), left[0])


async def _restart_one(
    connection: ClusterConnection,
    node: BrokerNode,
    restart: Restart,
    present: Collection[int],
    options: RestartOptions,
    left: Sequence[BrokerNode],
    tell: Tell,
) -> None:
    """Returns when the broker is back, and nothing is short of replicas."""
    waits_for = "its command"
    begun_s = time.monotonic()
    witness = await PeerChannel.connect(node.address.host, node.address.port)
    try:
        async with asyncio.timeout(options.timeout_s):
            await restart(node)
            waits_for = "the end of its old process, which answers as if nothing had happened"
            while not await _is_gone(witness):
                await asyncio.sleep(_LOOK_S)
            waits_for = "its return"
            while not await _is_back(connection, node):
                await asyncio.sleep(_LOOK_S)
            tell(f"      back after {time.monotonic() - begun_s:.1f} s")
            while (lacking := await _lacking(connection, present)) is not None:
                waits_for = lacking
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        reason = f"it has waited for {options.timeout_s:g} s, in the end for {waits_for}."
        raise RestartStoppedError(_ended(left, node, reason)) from None
    except RestartStoppedError as error:
        raise RestartStoppedError(_ended(left, node, str(error))) from None
    finally:
        with contextlib.suppress(KafkaError):
            await witness.close()
    tell(f"      in sync after {time.monotonic() - begun_s:.1f} s")


async def _is_gone(witness: PeerChannel) -> bool:
    """Whether the process that was asked before the restart has ended."""
    if witness.is_closed:
        return True
    with contextlib.suppress(KafkaError):
        # A machine that has lost its power says nothing; this keeps the connection busy, too.
        await witness.send(ApiVersionsRequest(), version=0, timeout_s=ANSWER_S)
    return witness.is_closed


async def _is_back(connection: ClusterConnection, node: BrokerNode) -> bool:
    """Whether it is registered, and answers where it says it is."""
    cluster = await told(BrokerOperations(connection).describe_cluster())
    if cluster is None or node.broker_id not in {each.broker_id for each in cluster.brokers}:
        return False
    await told(connection.refresh(()))
    return await log_directories(connection, node.broker_id) is not None


async def _lacking(connection: ClusterConnection, present: Collection[int]) -> str | None:
    """What is not as it should be, for a sentence; None if all is well."""
    cluster = await told(BrokerOperations(connection).describe_cluster())
    found = await told(find_topics(connection))
    if cluster is None or found is None:
        return "an answer of the cluster"
    live = {each.broker_id for each in cluster.brokers}
    if missing := sorted(set(present) - live):
        return f"broker {listed(missing)}, which is not there any more"
    if cluster.controller_id not in live:
        return "a controller"
    health = PartitionHealth.of(without_added(*found))
    if health.offline:
        return f"a leader of {listed(health.offline, _NAMED_MAX)}"
    if health.under_replicated:
        return f"replicas of {listed(health.under_replicated, _NAMED_MAX)} to be in sync"
    return None


async def _give_leaders_back(connection: ClusterConnection, tell: Tell) -> None:
    outcomes = await ElectionOperations(connection).elect_leaders(raise_errors=False)
    elected = sum(1 for outcome in outcomes.values() if outcome is True)
    failed = [key for key, outcome in outcomes.items() if isinstance(outcome, KafkaError)]
    if elected:
        tell(f"{counted(elected, 'partition')} led by the preferred leader again.")
    if failed:
        tell(
            f"No preferred leader yet: {listed(failed, _NAMED_MAX)}. Try again with "
            "`headwater elect-leaders --all-topic-partitions`."
        )


def _stops(check: RestartCheck, options: RestartOptions) -> bool:
    return bool(check.short or ((check.alone or check.refusing) and not options.may_take_away))


def _ended(left: Sequence[BrokerNode], node: BrokerNode, reason: str) -> str:
    waiting = sorted(each.broker_id for each in left)
    rest = f" Brokers {listed(waiting)} were not touched." if waiting else ""
    return f"The rolling restart ended at broker {node.broker_id}: {reason}{rest}"
