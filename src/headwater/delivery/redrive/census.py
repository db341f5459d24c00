"""A dry run: what a task would do, counted, with a few letters to look at. Nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headwater.delivery.redrive.judgement import Judged
from headwater.delivery.redrive.tasks.task import Counts

SAMPLES_MAX: Final = 5
#: Messages of errors may all be different: beyond this they are counted together.
_KINDS_MAX: Final = 1000
_OTHERS: Final = "(others)"


@dataclass(slots=True)
class Census:
    """Counts of what would be sent, by what people ask for."""

    counts: Counts = field(default_factory=Counts)
    by_topic: Counter[str] = field(default_factory=Counter)
    by_error: Counter[str] = field(default_factory=Counter)
    by_group: Counter[str] = field(default_factory=Counter)
    by_target: Counter[str] = field(default_factory=Counter)
    #: The first few letters, and what would be sent of each.
    samples: list[Judged] = field(default_factory=list)
    #: Why letters would not be sent, and how many.
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, judged: Sequence[Judged]) -> None:
        counts = self.counts
        for each in judged:
            counts.read += 1
            setattr(counts, each.outcome, getattr(counts, each.outcome) + 1)
            if each.reason is not None:
                _add(self.reasons, each.reason)
            if each.outgoing is None:
                continue
            letter = each.letter
            _add(self.by_topic, letter.origin.topic if letter.origin else "(not told)")
            _add(self.by_error, letter.error)
            _add(self.by_group, letter.group or "(not told)")
            _add(self.by_target, each.outgoing.topic)
            if len(self.samples) < SAMPLES_MAX:
                self.samples.append(each)

    def as_json(self) -> dict[str, Any]:
        """Without the samples."""
        return {
            "counts": self.counts.as_json(),
            "by_origin_topic": dict(self.by_topic.most_common()),
            "by_error": dict(self.by_error.most_common()),
            "by_group": dict(self.by_group.most_common()),
            "by_target": dict(self.by_target.most_common()),
            "reasons": dict(self.reasons.most_common()),
        }


def _add(counter: Counter[str], name: str) -> None:
    is_known = name in counter or len(counter) < _KINDS_MAX
    counter[name if is_known else _OTHERS] += 1
