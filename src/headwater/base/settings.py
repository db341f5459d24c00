"""Tables of settings, and the values that a configuration gives them.

Each area of the program owns a table next to the code that its settings steer; the whole broker's
table is their combination. A name that appears twice fails while the module that defines it is
imported, because then one of the two rows would silently lose.

A row may say what a topic calls the setting. The table of topic settings is derived from such
rows, so that a topic's `segment.bytes` and the broker's `log.segment.bytes` share type, bounds and
doc, and a topic that does not set it inherits the broker's value.
"""

from collections.abc import Iterable, Iterator, Mapping

from headwater.base.checks import check
from headwater.base.properties_file import read_properties_file
from headwater.base.setting import (
    DynamicScope,
    Setting,
    SettingError,
    SettingKind,
    SettingValue,
    Synonym,
)
from headwater.base.setting_values import SettingValues, unknown_setting

__all__ = [
    "DynamicScope",
    "Setting",
    "SettingError",
    "SettingKind",
    "SettingTable",
    "SettingValue",
    "SettingValues",
    "Synonym",
    "read_properties_file",
    "render_markdown",
]


class SettingTable:
    """The settings of one area, by name, in the order in which they were given."""

    def __init__(self, area: str, rows: Iterable[Setting]) -> None:
        self.area = area
        self._rows: dict[str, Setting] = {}
        for row in rows:
            check(row.name not in self._rows, "%s has the setting %s twice", area, row.name)
            self._rows[row.name] = row

    @classmethod
    def combine(cls, area: str, *tables: "SettingTable") -> "SettingTable":
        """One table with the rows of several."""
        return cls(area, (row for table in tables for row in table))

    def topic_table(self, area: str) -> "SettingTable":
        """The settings that a topic can override, under the names that topics use."""
        return SettingTable(area, (self._topic_row(row) for row in self if row.topic_name))

    def __iter__(self) -> Iterator[Setting]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __getitem__(self, name: str) -> Setting:
        row = self._rows.get(name)
        if row is None:
            raise unknown_setting(name, self._rows, self.area)
        return row

    def defaults(self) -> SettingValues:
        """What holds where nothing is configured."""
        values = {row.name: row.default for row in self}
        return SettingValues(self.area, self._rows, values)

    def parse(self, texts: Mapping[str, str], source: str = "") -> SettingValues:
        """The values of a configuration that comes from `source`, which messages name."""
        return self.defaults().with_overrides(texts, source)

    def inherit(self, values: SettingValues) -> SettingValues:
        """The values of this table where only its synonyms, which `values` holds, are set."""
        inherited: dict[str, SettingValue] = {}
        for row in self:
            inherited[row.name] = row.default
            for synonym in row.synonyms:
                value = synonym.value_from(values.value(synonym.name))
                if value is not None:
                    inherited[row.name] = value
                    break
        return SettingValues(self.area, self._rows, inherited)

    def _topic_row(self, row: Setting) -> Setting:
        synonyms = (Synonym(row.name), *row.synonyms)
        values = (synonym.value_from(self[synonym.name].default) for synonym in synonyms)
        return Setting(
            name=row.topic_name or row.name,
            kind=row.kind,
            default=next((value for value in values if value is not None), None),
            doc=row.doc,
            lower=row.lower,
            upper=row.upper,
            choices=row.choices,
            dynamic=DynamicScope.CLUSTER_WIDE,
            synonyms=synonyms,
            without_effect=row.without_effect,
        )


def render_markdown(table: SettingTable, *, with_scope: bool = True) -> str:
    """The table as documentation: one line a setting, sorted by name."""
    scope = "Changes while running | " if with_scope else ""
    lines = [
        f"| Name | Type | Default | Allowed | {scope}Meaning |",
        f"| --- | --- | --- | --- | {'--- | ' if with_scope else ''}--- |",
    ]
    for row in sorted(table, key=lambda row: row.name):
        default = row.render(row.default)
        cells = (
            f"`{row.name}`",
            row.kind.name.lower(),
            "none" if default is None else f"`{default}`" if default else "empty",
            row.allowed(),
            *([row.dynamic.value] if with_scope else []),
            row.doc,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
