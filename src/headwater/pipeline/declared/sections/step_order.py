"""The order of steps: each reads only what is named before it, and no name is there twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.pipeline.declared.problems import Problems, suggestion
from headwater.pipeline.declared.sections.step import DraftStep, Use
from headwater.pipeline.declared.specs.step import StepSpec


def resolve_steps(
    sources: Mapping[str, object], drafts: Sequence[DraftStep], problems: Problems
) -> tuple[StepSpec, ...]:
    """The steps with their inputs as defined; as in SQL, upper and lower case are the same."""
    defined = {name.lower(): name for name in sources}
    later = {draft.name.lower(): draft for draft in drafts}
    found: list[StepSpec] = []
    for draft in drafts:
        inputs: dict[str, None] = {}
        for use in draft.uses:
            name = defined.get(use.name.lower())
            if name is not None:
                inputs[name] = None
            elif not use.may_be_own:
                problems.add(use.place, _unknown(draft, use, defined, later))
        inputs |= {name: None for lower, name in defined.items() if lower in draft.words}
        if draft.name.lower() in defined:
            problems.add(draft.place, f"the name {draft.name!r} is used twice.")
        defined.setdefault(draft.name.lower(), draft.name)
        if draft.spec is not None:
            found.append(replace(draft.spec, inputs=tuple(inputs)))
    return tuple(found)


def _unknown(
    draft: DraftStep, use: Use, defined: Mapping[str, str], later: Mapping[str, DraftStep]
) -> str:
    """What is wrong with a name that is not defined before the step."""
    target = later.get(use.name.lower())
    if target is None:
        advice = suggestion(use.name, defined.values())
        return (
            f"step {draft.name!r} reads {use.name!r}, which is not a source or step before it"
            f"{advice}"
        )
    if target.name == draft.name:
        return f"step {draft.name!r} reads itself."
    if _reaches(target, draft.name.lower(), later):
        return (
            f"step {draft.name!r} reads {target.name!r}, which in turn reads {draft.name!r}: "
            "a cycle."
        )
    return (
        f"step {draft.name!r} reads {target.name!r}, which comes after it: "
        f"move {target.name!r} before {draft.name!r}."
    )


def _reaches(start: DraftStep, goal: str, drafts: Mapping[str, DraftStep]) -> bool:
    """Whether `goal` is read by `start`, directly or through others."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        draft = waiting.pop()
        for use in draft.uses:
            name = use.name.lower()
            if name == goal:
                return True
            if name in drafts and name not in seen:
                seen.add(name)
                waiting.append(drafts[name])
    return False
