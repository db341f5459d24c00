"""What `headwater brokers` does on a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

import typer

from headwater.balance.cluster_load import ClusterLoad, Resource
from headwater.balance.placement import Placement
from headwater.balance.plan import Plan
from headwater.balance.planner import PlanRequest, make_plan
from headwater.base.errors import ErrorCode, KafkaError
from headwater.cli.brokers.measured_load import measure
from headwater.cli.brokers.moving import carry_out
from headwater.cli.brokers.plan_output import print_plan
from headwater.cli.output.plain_table import Column, Row, print_rows
from headwater.cli.output.sizes import size_text
from headwater.client.admin import BrokerOperations, TopicOperations
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


class PlanOptions(NamedTuple):
    """How a plan is made and carried out."""

    #: How long traffic is watched before.
    watch_s: float
    #: What a broker is thought to receive in a second.
    rate_bytes: int
    per_broker: int


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
    load = await measure(connection, options.watch_s)
    _require(load, broker_id, is_alive=False)
    request = PlanRequest(emptied=frozenset({broker_id}), is_balancing=False)
    plan = make_plan(load, request)
    await _propose(connection, plan, options, is_sure=is_sure)
    print(f"Broker {broker_id} holds nothing any more: it may be stopped for good.")


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
        print_plan(plan, options.rate_bytes)
        return
    await _propose(connection, plan, options, is_sure=is_sure)


async def restart_check(connection: ClusterConnection, broker_id: int) -> bool:
    """Say what stopping a broker now would do; whether it would hurt."""
    cluster = await BrokerOperations(connection).describe_cluster()
    if broker_id not in {broker.broker_id for broker in cluster.brokers}:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"There is no live broker {broker_id}.")
    alone: list[str] = []
    short: list[str] = []
    for topic in await TopicOperations(connection).list_topics():
        for partition in topic.partitions:
            others = [each for each in partition.isr if each != broker_id]
            if broker_id not in partition.isr:
                continue
            if not others:
                alone.append(f"{topic.name}-{partition.partition}")
            elif len(partition.isr) < len(partition.replicas):
                short.append(f"{topic.name}-{partition.partition}")
    if alone:
        print(
            f"Stopping broker {broker_id} now would take {_counted(alone)} away: no other replica "
            f"is in sync ({_some(alone)})."
        )
    if short:
        print(
            f"{_counted(short)} of this broker are short of replicas already ({_some(short)}): "
            "wait until they are in sync."
        )
    if not alone and not short:
        print(f"Broker {broker_id} can be stopped: all of its partitions are in sync elsewhere.")
    return bool(alone or short)


async def _propose(
    connection: ClusterConnection, plan: Plan, options: PlanOptions, *, is_sure: bool
) -> None:
    """Show a plan, ask, and carry it out; raises if it cannot do what it is for."""
    print_plan(plan, options.rate_bytes)
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
    await carry_out(connection, plan, options.per_broker)
    print("Done: every new replica is in sync.")


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


def _counted(names: Sequence[str]) -> str:
    return "1 partition" if len(names) == 1 else f"{len(names)} partitions"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= 3 else f"{shown}, ..."
