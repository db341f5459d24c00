"""What shall become of each letter: sent where and how, or left where it is, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.base.errors import InvalidConfigError, KafkaError
from headwater.client.consumer.record import ConsumerRecord
from headwater.delivery.redrive.letters.letter import Letter, read_letter
from headwater.delivery.redrive.outgoing import (
    EditFunction,
    Outgoing,
    edited,
    finished,
    outgoing_of,
)
from headwater.delivery.redrive.targets import Target, Targets
from headwater.delivery.redrive.tasks.offset_ranges import OffsetRanges
from headwater.delivery.redrive.tasks.plan import RedrivePlan, To

NO_HOME: Final = (
    "Nobody told where these letters were at first, so they cannot go back there: send them to the "
    "retry topic of their group, or to a topic that you name."
)
NO_GROUP: Final = (
    "These letters do not tell which group could not handle them: send them to their original "
    "topic, or to a topic that you name."
)


class Judged(NamedTuple):
    """A letter, and what is sent of it; if nothing is, why."""

    letter: Letter
    outgoing: Outgoing | None
    #: Which of the `Counts` it belongs to.
    outcome: str
    reason: str | None = None


class Judge:
    """Knows the plan, and what earlier tasks have sent."""

    def __init__(
        self,
        plan: RedrivePlan,
        targets: Targets,
        done: Mapping[int, OffsetRanges],
        edit: EditFunction | None,
    ) -> None:
        if plan.has_function != (edit is not None):
            raise InvalidConfigError(
                "This task changes letters by a function or a file, which has to be given again."
                if plan.has_function
                else "A task that was begun without a function cannot get one."
            )
        self._plan = plan
        self._targets = targets
        self._done = {} if plan.again else {at: ranges for at, ranges in done.items() if ranges}
        self._edit = edit

    async def judge(self, records: Sequence[ConsumerRecord]) -> list[Judged]:
        """In the order of the records. Raises what the caller's function raises."""
        letters = list(map(read_letter, records))
        if self._plan.to is To.RETRY:
            await self._targets.look_up_groups([each.group for each in letters if each.group])
        chosen = list(map(self._chosen, letters))
        topics = [each.outgoing.topic for each in chosen if each.outgoing is not None]
        await self._targets.look_up(topics)
        return [self._bound(each) for each in chosen]

    def _chosen(self, letter: Letter) -> Judged:
        """Whether it is meant at all, and which topic it is bound for."""
        plan, record = self._plan, letter.record
        if not plan.filter.matches(letter):
            return Judged(letter, None, "other")
        done = self._done.get(record.partition)
        if done is not None and record.offset in done:
            return Judged(letter, None, "already")
        if letter.redrives >= plan.max_redrives:
            return Judged(letter, None, "loops")
        if plan.to is To.TOPIC:
            return Judged(letter, outgoing_of(letter, plan.topic or "", None), "sent")
        if plan.to is To.RETRY:
            if not letter.group:
                return Judged(letter, None, "homeless", NO_GROUP)
            topic = self._targets.retry_topic(letter.group)
            return Judged(letter, outgoing_of(letter, topic, None), "sent")
        home = letter.home
        if home is None:
            return Judged(letter, None, "homeless", NO_HOME)
        return Judged(letter, outgoing_of(letter, home.topic, home.partition), "sent")

    def _bound(self, judged: Judged) -> Judged:
        """What is sent, if its topic may be gone to and the caller's function does not object."""
        letter, outgoing = judged.letter, judged.outgoing
        if outgoing is None:
            return judged
        target = self._targets.known(outgoing.topic)
        if isinstance(target, KafkaError):
            return Judged(letter, None, "refused", str(target))
        if target.is_dead_letter or outgoing.topic == self._plan.source:
            reason = f"{outgoing.topic!r} is a dead-letter topic, which letters are not sent to."
            return Judged(letter, None, "refused", reason)
        if self._plan.to is To.ORIGIN and target.is_retry:
            return Judged(letter, None, "homeless", NO_HOME)
        changed: Outgoing | None = edited(outgoing, self._plan.edits)
        if self._edit is not None and changed is not None:
            changed = self._edit(changed, letter)
        if changed is None:
            return Judged(letter, None, "left_out")
        # The topic is the plan's to choose, and was looked at.
        changed = changed._replace(topic=outgoing.topic)
        return Judged(letter, self._finished(changed, letter, target), "sent")

    def _finished(self, outgoing: Outgoing, letter: Letter, target: Target) -> Outgoing:
        is_retried = target.is_retry or self._plan.to is To.RETRY
        sent = finished(outgoing, letter, is_retried=is_retried)
        if sent.partition is not None and sent.partition >= target.partition_count:
            return sent._replace(partition=None)
        return sent
