"""What `headwater dlq redrive`, `tasks`, `pause`, `resume` and `stop` do on a cluster."""

from __future__ import annotations

import json
import sys
import time
from typing import Final

from headwater.base.printable import printable, shortened
from headwater.cli.dlq.files import edits_of
from headwater.cli.dlq.looking import moment
from headwater.cli.output.json_document import print_document
from headwater.cli.output.plain_table import WIDE, Column, Row, print_rows
from headwater.delivery.redrive.async_redrives import AsyncRedrives
from headwater.delivery.redrive.census import Census
from headwater.delivery.redrive.letters.json_lines import letter_document, shown_bytes
from headwater.delivery.redrive.outgoing import EditFunction
from headwater.delivery.redrive.tasks.plan import RedrivePlan
from headwater.delivery.redrive.tasks.task import Counts, RedriveTask, State

#: How often people are told how far it is.
_TOLD_S: Final = 1.0
_TASKS: Final = (
    Column("TASK", "task"),
    Column("SOURCE", "source"),
    Column("TARGET", "target"),
    Column("STATE", "state"),
    Column("DONE", "done"),
    Column("SENT", "sent", is_number=True),
    Column("LEFT", "left", is_number=True),
    Column("BEGUN", "begun"),
)
_TASKS_IN_JSON: Final = tuple(
    Column("", key)
    for key in (
        *("task", "source", "target", "state", "share_done", "counts", "created_ms"),
        *("beat_ms", "error", "complaints", "plan"),
    )
)
#: In what words a letter is told that was not sent.
_WORDS: Final = {
    "other": "not meant by the filter",
    "already": "sent back before (--again sends them once more)",
    "loops": "sent back too often (--max-redrives)",
    "homeless": "without a known way back",
    "refused": "refused",
    "left_out": "left out",
}


async def preview(
    redrives: AsyncRedrives, plan: RedrivePlan, edit: EditFunction | None, *, as_json: bool
) -> None:
    census = await redrives.preview(plan, edit)
    if as_json:
        print_document(census.as_json() | {"samples": _samples(census)})
        return
    print(f"A dry run: nothing is sent. Of {census.counts.read} letters in {plan.source}:")
    _print_counts(census.counts, "would be sent")
    for title, counter in (
        ("by origin topic", census.by_topic),
        ("by error", census.by_error),
        ("by group", census.by_group),
        ("by target", census.by_target),
    ):
        if counter:
            shown = [f"{shortened(name, 60)} {count}" for name, count in counter.most_common(5)]
            print(f"  {title}: {printable(', '.join(shown))}")
    for reason, count in census.reasons.most_common(5):
        print(f"  {count}: {printable(reason)}")
    for sample in _samples(census):
        print(f"  such as {printable(json.dumps(sample, ensure_ascii=False))}")


def _samples(census: Census) -> list[dict[str, object]]:
    return [
        {
            "letter": letter_document(each.letter)["id"],
            "target": each.outgoing.topic,
            "key": shown_bytes(each.outgoing.key),
            "value": shown_bytes(each.outgoing.value),
            "headers": [[name, shown_bytes(value)] for name, value in each.outgoing.headers],
        }
        for each in census.samples
        if each.outgoing is not None
    ]


async def redrive(
    redrives: AsyncRedrives, plan: RedrivePlan, edit: EditFunction | None, *, as_json: bool
) -> None:
    teller = ProgressTeller(is_silent=as_json)
    try:
        task = await redrives.run(plan, edit, teller.tell)
    except BaseException:
        teller.tell_way_on()
        raise
    _print_end(task, as_json=as_json)


async def resume(
    redrives: AsyncRedrives, task_id: str, edited: str | None, *, as_json: bool
) -> None:
    source = (await redrives.task(task_id)).plan.source
    edit = None if edited is None else edits_of(edited, source)
    teller = ProgressTeller(is_silent=as_json)
    try:
        task = await redrives.resume(task_id, edit, teller.tell)
    except BaseException:
        teller.tell_way_on()
        raise
    _print_end(task, as_json=as_json)


async def pause(redrives: AsyncRedrives, task_id: str, *, as_json: bool) -> None:
    task = await redrives.pause(task_id)
    if as_json:
        print_document(_row(task))
    else:
        print(f"The task {task_id} pauses: `headwater dlq resume {task_id}` lets it go on.")


async def stop(redrives: AsyncRedrives, task_id: str, *, as_json: bool) -> None:
    task = await redrives.stop(task_id)
    if as_json:
        print_document(_row(task))
    else:
        print(f"The task {task_id} stops. What it has sent stays sent.")


async def list_tasks(redrives: AsyncRedrives, source: str | None, *, as_json: bool) -> None:
    rows: list[Row] = [
        _row(task)
        for task in await redrives.tasks()
        if source is None or task.plan.source == source
    ]
    print_rows(_TASKS_IN_JSON if as_json else _TASKS, rows, as_json=as_json, form=WIDE)


def _row(task: RedriveTask) -> dict[str, object]:
    counts = task.progress.counts
    return {
        "task": task.id,
        "source": task.plan.source,
        "target": task.plan.target,
        "state": task.state(time.time_ns() // 1_000_000).value,
        "done": f"{task.share_done:.0%}",
        "share_done": round(task.share_done, 4),
        "sent": counts.sent,
        "left": counts.read - counts.sent,
        "counts": counts.as_json(),
        "begun": moment(task.created_ms),
        "created_ms": task.created_ms,
        "beat_ms": task.progress.beat_ms,
        "error": task.progress.error,
        "complaints": task.progress.complaints,
        "plan": task.plan.as_json(),
    }


def _print_end(task: RedriveTask, *, as_json: bool) -> None:
    if as_json:
        print_document(_row(task))
        return
    state = task.progress.state
    if state not in (State.DONE, State.STOPPED):
        print(f"The task {task.id} goes on where it runs.")
        return
    print(f"The task {task.id} is {state}. Of {task.progress.counts.read} letters:")
    _print_counts(task.progress.counts, "sent")
    for sentence in task.progress.complaints:
        print(f"  {printable(sentence)}")


def _print_counts(counts: Counts, sent: str) -> None:
    print(f"  {counts.sent} {sent}")
    for name, words in _WORDS.items():
        count = getattr(counts, name)
        if count:
            print(f"  {count} {words}")


class ProgressTeller:
    """Tells on standard error how to steer a task, and at a terminal each second how far it is."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._task: RedriveTask | None = None
        self._next_s = 0.0
        self._is_line_open = False

    def tell(self, task: RedriveTask) -> None:
        is_first = self._task is None
        self._task = task
        if self._is_silent:
            return
        if is_first:
            print(
                f"headwater: The task {task.id} begins: `headwater dlq pause {task.id}`, `resume` "
                "and `stop` steer it.",
                file=sys.stderr,
            )
        is_over = task.progress.state.is_final
        now_s = time.monotonic()
        if sys.stderr.isatty() and (now_s >= self._next_s or is_over):
            self._next_s = now_s + _TOLD_S
            counts = task.progress.counts
            line = f"{task.share_done:4.0%}  read {counts.read:,}  sent {counts.sent:,}"
            print(f"\r{line:<60}", end="\n" if is_over else "", file=sys.stderr, flush=True)
            self._is_line_open = not is_over

    def tell_way_on(self) -> None:
        """How to carry on with what was broken off."""
        if self._task is not None:
            end = "\n" if self._is_line_open else ""
            print(
                f"{end}headwater: `headwater dlq resume {self._task.id}` carries on where it was.",
                file=sys.stderr,
            )
