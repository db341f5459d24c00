"""What `headwater doctor` found: each thing it looked at, and whether that is well."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from headwater.cli.output.colour import Tone


class Verdict(Enum):
    """How a finding is to be taken; the value is the mark in front of its line."""

    GOOD = "ok  "
    #: Worth knowing, and no reason to act.
    NOTE = "note"
    #: Something that a person should change.
    PROBLEM = "BAD "


#: How a verdict looks, and what `--json` calls it.
TONES = {Verdict.GOOD: Tone.GOOD, Verdict.NOTE: Tone.WARNING, Verdict.PROBLEM: Tone.BAD}
JSON_NAMES = {Verdict.GOOD: "ok", Verdict.NOTE: "note", Verdict.PROBLEM: "problem"}


class Finding(NamedTuple):
    verdict: Verdict
    #: What was looked at, in a word or two.
    subject: str
    sentence: str


def good(subject: str, sentence: str) -> Finding:
    return Finding(Verdict.GOOD, subject, sentence)


def note(subject: str, sentence: str) -> Finding:
    return Finding(Verdict.NOTE, subject, sentence)


def problem(subject: str, sentence: str) -> Finding:
    return Finding(Verdict.PROBLEM, subject, sentence)


def problem_count(findings: Iterable[Finding]) -> int:
    return sum(finding.verdict is Verdict.PROBLEM for finding in findings)
