"""Names of options and settings that a file passes on, held against the tables of those they go to.

Values are left to whoever takes them; a wrong name would be found only when the query starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.client.settings.consumer_settings import CONSUMER_SETTINGS
from headwater.client.settings.producer_settings import PRODUCER_SETTINGS
from headwater.pipeline.connector.option_table import (
    BOOTSTRAP_OPTION,
    KAFKA_PREFIX,
    OptionError,
    OptionTable,
)
from headwater.pipeline.declared.problems import Place, Problems, suggestion
from headwater.pipeline.declared.sections.reader import Section
from headwater.pipeline.declared.yaml_document import MapValue


def check_options(
    owner: str,
    section: Section,
    table: OptionTable,
    own_fields: Mapping[str, str],
    problems: Problems,
) -> None:
    """Complain about options that the connector has not, or that the file has a field for.

    `own_fields` are the latter, by the option's name in lower case.
    """
    for name in section.get("options", {}):
        place = _key_place(section, "options", name)
        field = own_fields.get(name.lower())
        if field is not None:
            problems.add(
                place, f"'options' of {owner} cannot have {name!r}: the field {field!r} is for it."
            )
            continue
        try:
            table.check({BOOTSTRAP_OPTION: "", name: ""})
        except OptionError as error:
            problems.add(place, f"'options' of {owner}: {_lowered(str(error))}")
        if name.lower().startswith(KAFKA_PREFIX):
            _check_setting(f"'options' of {owner}", name, section, "options", problems)


def check_kafka_settings(section: Section, problems: Problems) -> None:
    """Complain about settings under `kafka` that neither consumers nor producers have."""
    for name in section.get("kafka", {}):
        place = _key_place(section, "kafka", name)
        if name.removeprefix(KAFKA_PREFIX) == "bootstrap.servers":
            problems.add(
                place, "'kafka' cannot have 'bootstrap.servers': write 'bootstrap_servers'."
            )
        elif name.startswith(KAFKA_PREFIX):
            bare = name.removeprefix(KAFKA_PREFIX)
            problems.add(place, f"'kafka' has {name!r}: leave out the prefix, as in {bare!r}.")
        else:
            _check_setting("'kafka'", name, section, "kafka", problems)


def _check_setting(where: str, name: str, section: Section, field: str, problems: Problems) -> None:
    known = _setting_names()
    bare = name.lower().removeprefix(KAFKA_PREFIX)
    if bare not in known:
        advice = suggestion(bare, known)
        place = _key_place(section, field, name)
        problems.add(place, f"{where}: clients have no setting {bare!r}{advice}")


def _setting_names() -> list[str]:
    rows: Iterable[str] = (
        row.name for table in (CONSUMER_SETTINGS, PRODUCER_SETTINGS) for row in table
    )
    return list(dict.fromkeys(rows))


def _key_place(section: Section, field: str, key: str) -> Place:
    value = section.entries[field].value
    entry = value.get(key) if isinstance(value, MapValue) else None
    return entry.place if entry is not None else section.place_of(field)


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
