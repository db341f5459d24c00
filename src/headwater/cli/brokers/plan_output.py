"""A plan as people read it: what moves, what that costs, and what it is good for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.balance.cluster_load import Resource
from headwater.balance.plan import BrokerOutcome, Plan
from headwater.base.counted import counted
from headwater.cli.output.plain_table import Column, Row, print_table
from headwater.cli.output.sizes import size_text

_MOVES_SHOWN: Final = 20

_BROKERS: Final = (
    Column("BROKER", "broker", is_number=True),
    Column("RACK", "rack"),
    Column("REPLICAS", "replicas"),
    Column("LEADERS", "leaders"),
    Column("DISK", "disk"),
    Column("TRAFFIC IN", "inbound"),
)
_GOALS: Final = (
    Column("GOAL", "goal"),
    Column("BEFORE", "before"),
    Column("AFTER", "after"),
)
_MOVES: Final = (
    Column("PARTITION", "partition"),
    Column("FROM", "before"),
    Column("TO", "after"),
    Column("COPIED", "copied"),
)


def print_plan(plan: Plan, rate_bytes: int, throttle_bytes: int | None) -> None:
    """What a plan does to brokers and goals, its first moves, and what it will take."""
    print_table("Brokers, now and then:", _BROKERS, [_broker_row(each) for each in plan.brokers])
    print_table("What it is for:", _GOALS, list(_goal_rows(plan)))
    if not plan.moves:
        print("Nothing has to move.")
        return
    rows: list[Row] = [
        {
            "partition": str(move.topic_partition),
            "before": _shown(move.before),
            "after": _shown(move.after),
            "copied": size_text(move.moved_bytes) if move.adding else "nothing",
        }
        for move in plan.moves[:_MOVES_SHOWN]
    ]
    print_table("Moves:", _MOVES, rows)
    if len(plan.moves) > _MOVES_SHOWN:
        print(f"... and {len(plan.moves) - _MOVES_SHOWN} more.")
    print(cost_sentence(plan, throttle_bytes or rate_bytes))
    print(throttle_sentence(throttle_bytes))


def throttle_sentence(throttle_bytes: int | None) -> str:
    """What it leaves to everybody else."""
    if throttle_bytes is None:
        return "Nothing throttles the moves: the brokers of this cluster do not know of throttles."
    if not throttle_bytes:
        return "Nothing throttles the moves: they go as fast as brokers can."
    return (
        f"No broker sends or receives more than {size_text(throttle_bytes)} a second for new "
        "replicas. `headwater reassign throttle RATE` changes that meanwhile."
    )


def cost_sentence(plan: Plan, rate_bytes: int) -> str:
    """What the plan costs, before anything moves."""
    changes = "changes" if len(plan.moves) == 1 else "change"
    copied = "is copied" if plan.moved_replicas == 1 else "are copied"
    moved = (
        f"{counted(len(plan.moves), 'partition')} {changes}, "
        f"{counted(plan.moved_replicas, 'replica')} {copied}"
    )
    minutes = plan.seconds(rate_bytes) / 60
    took = "less than a minute" if minutes < 1 else f"about {minutes:.0f} minutes"
    return (
        f"{moved}: {size_text(plan.moved_bytes)}, {took} if a broker receives "
        f"{size_text(rate_bytes)} a second."
    )


def _broker_row(broker: BrokerOutcome) -> Row:
    def change(resource: Resource, is_size: bool) -> str:
        before, after = broker.before[resource], broker.after[resource]
        texts = [size_text(each) if is_size else str(each) for each in (before, after)]
        return texts[0] if before == after else " -> ".join(texts)

    return {
        "broker": broker.broker_id,
        "rack": broker.rack,
        "replicas": change(Resource.REPLICAS, False),
        "leaders": change(Resource.LEADERS, False),
        "disk": change(Resource.DISK, True),
        "inbound": change(Resource.INBOUND, True) + "/s",
    }


def _goal_rows(plan: Plan) -> Iterator[Row]:
    for goal in plan.goals:
        words = [
            "met" if not violation else "NOT MET" if goal.is_hard else "not even"
            for violation in (goal.before, goal.after)
        ]
        yield {"goal": goal.name, "before": words[0], "after": words[1]}


def _shown(replicas: tuple[int, ...]) -> str:
    return ",".join(map(str, replicas))
