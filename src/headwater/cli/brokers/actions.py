"""What `headwater brokers` does on a cluster."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import typer

from headwater.balance.cluster_load import ClusterLoad, Resource
from headwater.balance.placement import Placement
from headwater.balance.plan import Plan
from headwater.balance.planner import PlanRequest, make_plan
from headwater.balance.raised_factor import raise_factor as plan_raise
from headwater.balance.raised_factor import short_of
from headwater.base.counted import counted
from headwater.base.errors import ErrorCode, KafkaError
from headwater.base.printable import listed
from headwater.cli.brokers.measured_load import measure
from headwater.cli.brokers.moving import Mover, Pace, usable_pace
from headwater.cli.brokers.plan_output import print_plan
from headwater.cli.brokers.restart_check import check_restart
from headwater.cli.brokers.waiting import RETURN_S, Waiting
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.cli.output.sizes import size_text
from headwater.client.admin import BrokerOperations
from headwater.client.connection.cluster_connection import ClusterConnection

_BROKERS: Final = (
    Column("BROKER", "broker", is_number=True),
    Column("ADDRESS", "address"),
    Column("RACK", "rack"),
    Column("CONTROLLER", "is_controller"),
    Column("REPLICAS", "replicas", is_number=True),
    Column("LEADERS", "leaders", is_number=True),
    Column("SIZE", "size"),
    Column("FREE", "free"),
    Column("CORDONED", "is_cordoned"),
)


_NAMED_MAX: Final = 3
#: A drain looks again so many times whether it was given something new.
_DRAINS_MAX: Final = 5
_LOOK_S: Final = 1.0


class PlanOptions(NamedTuple):
    """How a plan is made and carried out."""

    #: How long traffic is watched before.
    watch_s: float
    #: What a broker is thought to receive in a second, where nothing throttles it.
    rate_bytes: int
    per_broker: int
    #: The most that it is to receive, or send; 0 without a throttle.
    throttle_bytes: int
    #: Whether that was asked for: otherwise it is left out where brokers do not know of throttles.
    is_throttle_given: bool


async def list_brokers(connection: ClusterConnection, *, as_json: bool) -> None:
    cluster = await BrokerOperations(connection).describe_cluster()
    load = await measure(connection, 0.0)
    placement = Placement(load)
    addresses = {broker.broker_id: broker for broker in cluster.brokers}
    rows: list[Row] = []
    for broker in load.brokers:
        node = addresses.get(broker.broker_id)
        size = placement.used(Resource.DISK, broker.broker_id)
        capacity = broker.capacity.get(Resource.DISK)
        free = None if capacity is None else capacity - size
        rows.append(
            {
                "broker": broker.broker_id,
                "address": None if node is None else f"{node.address.host}:{node.address.port}",
                "rack": broker.rack,
                "is_controller": _shown(broker.broker_id == cluster.controller_id, as_json),
                "replicas": placement.used(Resource.REPLICAS, broker.broker_id),
                "leaders": placement.used(Resource.LEADERS, broker.broker_id),
                "size": size if as_json else size_text(size),
                "free": free if as_json or free is None else size_text(free),
                "is_cordoned": _shown(broker.is_cordoned, as_json),
            }
        )
    print_rows(_BROKERS, rows, as_json=as_json)


async def drain(
    connection: ClusterConnection, broker_id: int, options: PlanOptions, *, is_sure: bool
) -> None:
    """Move everything off a broker, so that it may be stopped for good."""
    waiting = Waiting()
    load = await waiting.through(lambda: measure(connection, options.watch_s))
    _require(load, broker_id, is_alive=False)
    for _ in range(_DRAINS_MAX):
        plan = await _emptying_patiently(connection, load, broker_id, waiting)
        await _propose(connection, plan, options, is_sure=is_sure)
        # New topics may have been put on it while it was being emptied.
        load = await waiting.through(lambda: measure(connection, 0.0))
        late = sum(broker_id in each.replicas for each in load.partitions)
        if not late:
            print(f"Broker {broker_id} holds nothing any more: it may be stopped for good.")
            return
        print(f"Meanwhile broker {broker_id} was given {counted(late, 'new partition')}.")
        is_sure = True  # That it is to be emptied was said before.
    raise KafkaError(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Broker {broker_id} is given new partitions again and again: set its cordoned.log.dirs to "
        "'*', and drain it again.",
    )


async def _emptying_patiently(
    connection: ClusterConnection, load: ClusterLoad, broker_id: int, waiting: Waiting
) -> Plan:
    """How to empty a broker, once those are there that can take what it has.

    Who is away for a restart should not be taken for gone.
    """
    deadline_s = time.monotonic() + RETURN_S
    while True:
        absent = [b.broker_id for b in load.brokers if not b.is_alive and b.broker_id != broker_id]
        try:
            plan = _emptying(load, broker_id)
            if not plan.unmet or not absent or time.monotonic() > deadline_s:
                return plan
        except KafkaError:
            if not absent or time.monotonic() > deadline_s:
                raise
        waiting.tell_absent(absent)
        await asyncio.sleep(_LOOK_S)
        load = await waiting.through(lambda: measure(connection, 0.0))


def _emptying(load: ClusterLoad, broker_id: int) -> Plan:
    """How to empty a broker; KafkaError if it has partitions that no other one can take."""
    taking = {each.broker_id for each in load.brokers if each.takes_replicas}
    stuck = [
        each.topic_partition
        for each in load.partitions
        if broker_id in each.replicas and taking <= {*each.replicas, broker_id}
    ]
    if stuck:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Broker {broker_id} cannot be emptied: {counted(len(stuck), 'partition')} of it "
            f"({listed(stuck, _NAMED_MAX)}) can go to no other broker, as those that take replicas "
            "have one already. Add a broker, or give the topics fewer replicas.",
        )
    return make_plan(load, PlanRequest(emptied=frozenset({broker_id}), is_balancing=False))


async def add_share(
    connection: ClusterConnection, broker_id: int, options: PlanOptions, *, is_sure: bool
) -> None:
    """Give a broker that is new its share of the load."""
    load = await measure(connection, options.watch_s)
    _require(load, broker_id, is_alive=True)
    plan = make_plan(load, PlanRequest(receiving=frozenset({broker_id})))
    await _propose(connection, plan, options, is_sure=is_sure)


async def balance(
    connection: ClusterConnection, options: PlanOptions, *, is_sure: bool, is_trial: bool
) -> None:
    """Even the load out over all brokers, or only say how."""
    plan = make_plan(await measure(connection, options.watch_s), PlanRequest())
    if is_trial:
        pace = await _pace(connection, options)
        print_plan(plan, options.rate_bytes, pace.throttle_bytes)
        return
    await _propose(connection, plan, options, is_sure=is_sure)


async def raise_factor(
    connection: ClusterConnection,
    factor: int,
    topics: Sequence[str] | None,
    options: PlanOptions,
    *,
    is_sure: bool,
) -> None:
    """Give topics, or all there are, so many replicas; those that have more keep them."""
    load = await measure(connection, options.watch_s)
    known = {each.topic_partition.topic for each in load.partitions}
    unknown = [topic for topic in topics or () if topic not in known]
    if unknown:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {', '.join(unknown)}."
        )
    if missing := short_of(load, factor):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{factor} replicas of a partition need as many brokers that take new ones, and "
            f"{missing} are missing.",
        )
    await _propose(connection, plan_raise(load, factor, topics), options, is_sure=is_sure)


async def restart_check(connection: ClusterConnection, broker_id: int) -> bool:
    """Say what stopping a broker now would do; whether it would hurt."""
    check = await check_restart(connection, broker_id)
    for sentence in check.sentences():
        print(sentence)
    return check.hurts


async def _propose(
    connection: ClusterConnection, plan: Plan, options: PlanOptions, *, is_sure: bool
) -> None:
    """Show a plan, ask, and carry it out; raises if it cannot do what it is for."""
    pace = await _pace(connection, options)
    print_plan(plan, options.rate_bytes, pace.throttle_bytes)
    if plan.unmet:
        names = ", ".join(goal.name for goal in plan.unmet)
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The brokers that are there cannot do it: {names}. Add brokers, racks or disks.",
        )
    if not plan.moves:
        return
    if not is_sure:
        if not sys.stdin.isatty():
            raise typer.BadParameter("nobody can be asked here: give --yes.", param_hint="--yes")
        typer.confirm("Move them?", abort=True)
    await Mover(connection, pace).carry_out(plan.moves)
    print("Done: every new replica is in sync.")


async def _pace(connection: ClusterConnection, options: PlanOptions) -> Pace:
    return await usable_pace(
        connection,
        options.per_broker,
        options.throttle_bytes,
        is_throttle_given=options.is_throttle_given,
    )


def _require(load: ClusterLoad, broker_id: int, *, is_alive: bool) -> None:
    """A broker that is gone can be drained, since other replicas are copied."""
    known = [each.broker_id for each in load.brokers if each.is_alive or not is_alive]
    if broker_id not in known:
        raise KafkaError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"There is no {'live ' if is_alive else ''}broker {broker_id}; the cluster has "
            f"{', '.join(map(str, known))}.",
        )


def _shown(flag: bool, as_json: bool) -> object:
    return flag if as_json else "yes" if flag else None
