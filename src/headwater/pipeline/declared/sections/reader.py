"""A section of the file held against its table: values by field, and everything that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headwater.pipeline.declared.fields.kinds import SECTION
from headwater.pipeline.declared.fields.table import Field, FieldTable
from headwater.pipeline.declared.problems import Place, Problems, listed, suggestion
from headwater.pipeline.declared.yaml_document import (
    Entry,
    MapValue,
    NoValue,
    TextValue,
    Value,
    is_unknown,
)


@dataclass(frozen=True, slots=True)
class Section:
    """What a section says.

    A field that was given and is wrong is in `entries` and not in `values`: it has been complained
    about, and nothing else should be said because of it.
    """

    place: Place
    values: dict[str, Any]
    entries: dict[str, Entry]

    def given(self, name: str) -> bool:
        return name in self.entries

    def place_of(self, name: str) -> Place:
        """Where the value of a field stands, or the section if it is not there."""
        return self.entries[name].value.place if name in self.entries else self.place

    def key_place(self, name: str) -> Place:
        return self.entries[name].place if name in self.entries else self.place

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)


def read_section(
    owner: str, value: Value, place: Place, table: FieldTable, problems: Problems
) -> Section | None:
    """The fields of a mapping; `owner` names it in sentences, as in "source 'orders'"."""
    if not isinstance(value, MapValue):
        what = "a string" if isinstance(value, TextValue) else "a list"
        found = "nothing" if isinstance(value, NoValue) else what
        problems.add(place, f"{owner} must be a mapping with fields, not {found}{_hint(table)}.")
        return None
    section = Section(place, {}, {})
    for entry in value.entries:
        field = table.get(entry.key)
        if field is None:
            advice = suggestion(entry.key, table.names())
            problems.add(entry.place, f"{owner} has no field {entry.key!r}{advice}")
            continue
        section.entries[entry.key] = entry
        _read_field(owner, field, entry, section, problems)
    _check_required(owner, section, table, problems)
    _check_one_of(owner, section, table.one_of, problems)
    _check_companions(owner, section, table, problems)
    return section


def _read_field(
    owner: str, field: Field, entry: Entry, section: Section, problems: Problems
) -> None:
    if isinstance(entry.value, NoValue):
        problems.add(entry.place, f"{field.name!r} of {owner} has no value.")
        return
    if field.kind is not SECTION and is_unknown(entry.value):
        return
    found = field.kind.read(entry.value, field.name, problems)
    if found is not None:
        section.values[field.name] = found


def _check_required(owner: str, section: Section, table: FieldTable, problems: Problems) -> None:
    for field in table:
        if field.required and not section.given(field.name):
            problems.add(section.place, f"{owner} needs the field {field.name!r}.")


def _check_one_of(owner: str, section: Section, names: Sequence[str], problems: Problems) -> None:
    given = [name for name in names if section.given(name)]
    if names and not given:
        problems.add(section.place, f"{owner} needs one of {listed(names, 'or')}.")
    for name in given[1:]:
        problems.add(
            section.key_place(name),
            f"{owner} cannot have both {given[0]!r} and {name!r}.",
        )


def _check_companions(owner: str, section: Section, table: FieldTable, problems: Problems) -> None:
    """Complain about fields that make no sense without another."""
    if table.one_of and not any(section.given(name) for name in table.one_of):
        return
    for field in table:
        if not section.given(field.name) or not field.only_with:
            continue
        if not any(section.given(name) for name in field.only_with):
            problems.add(
                section.key_place(field.name),
                f"{field.name!r} of {owner} is only for {listed(field.only_with, 'or')}.",
            )


def _hint(table: FieldTable) -> str:
    return f", such as {{{table.one_of[0]}: ...}}" if table.one_of else ""
