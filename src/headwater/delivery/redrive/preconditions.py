"""What must hold before a task runs: its topics are there, and nobody else sends its letters."""

from __future__ import annotations

from headwater.base.errors import InvalidConfigError, KafkaError
from headwater.client.admin.async_admin import AsyncAdmin
from headwater.client.connection.cluster_metadata import TopicInfo
from headwater.delivery.redrive.targets import Targets
from headwater.delivery.redrive.tasks.offset_ranges import OffsetRanges
from headwater.delivery.redrive.tasks.plan import RedrivePlan
from headwater.delivery.redrive.tasks.task import RedriveTask, State
from headwater.delivery.redrive.tasks.task_topic import TaskBook


async def find_topic(admin: AsyncAdmin, name: str) -> TopicInfo:
    found = (await admin.describe_topics([name]))[name]
    if isinstance(found, KafkaError):
        raise found
    return found


async def checked_targets(admin: AsyncAdmin, plan: RedrivePlan) -> Targets:
    """With the topic that the plan names looked at: it must be there, and no dead-letter topic."""
    targets = Targets(admin)
    if plan.topic is not None:
        await targets.look_up([plan.topic])
        target = targets.known(plan.topic)
        if isinstance(target, KafkaError):
            raise target
        if target.is_dead_letter:
            raise InvalidConfigError(
                f"{plan.topic!r} is a dead-letter topic: letters are not sent from one to another."
            )
    return targets


def require_task(book: TaskBook, task_id: str) -> RedriveTask:
    task = book.task(task_id)
    if task is None:
        raise InvalidConfigError(f"There is no redrive task {task_id!r}.")
    return task


def require_free(book: TaskBook, source: str, task_id: str | None, now_ms: int) -> None:
    """Raises if somebody runs another task of the topic."""
    for task in book.tasks():
        if task.plan.source == source and task.id != task_id and task.is_alive(now_ms):
            state = "is paused" if task.progress.state is State.PAUSED else "runs"
            raise InvalidConfigError(
                f"The task {task.id} of {source!r} {state}: wait for it, or stop it."
            )


def done_ranges(book: TaskBook, source: str, source_id: str) -> dict[int, OffsetRanges]:
    """What any task has sent of the letters of a topic, by partition."""
    found: dict[int, list[tuple[int, int]]] = {}
    for task in book.tasks():
        if task.plan.source == source and task.source_id == source_id:
            for partition, ranges in book.ranges_of(task.id).items():
                found.setdefault(partition, []).extend(ranges)
    return {partition: OffsetRanges(ranges) for partition, ranges in found.items()}
