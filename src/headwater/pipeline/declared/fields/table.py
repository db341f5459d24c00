"""The fields that a section of a pipeline's file may have: a row each, for checks and docs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headwater.base.checks import check
from headwater.pipeline.declared.fields.kinds import Kind


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `default` and `example` are as the reference shows them.

    `only_with` are fields of which one must be there for this one to make sense.
    """

    name: str
    kind: Kind
    doc: str
    required: bool = False
    default: str = ""
    example: str = ""
    only_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldTable:
    """The fields of a section. Of the fields in `one_of` exactly one must be given."""

    section: str
    doc: str
    fields: tuple[Field, ...]
    one_of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [row.name for row in self.fields]
        check(len(names) == len(set(names)), "a field of %s is there twice", self.section)
        mentioned = {*self.one_of, *(name for row in self.fields for name in row.only_with)}
        check(mentioned <= set(names), "%s speaks of fields that it has not", self.section)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def names(self) -> list[str]:
        return [row.name for row in self.fields]

    def get(self, name: str) -> Field | None:
        return next((row for row in self.fields if row.name == name), None)
