"""The value of a setting as its user gives it, and as the protocol has it: always as text."""

from __future__ import annotations

from typing import TypeAlias

#: None leaves the default, or takes back what was set.
ConfigValue: TypeAlias = str | int | float | bool | None


def config_text(name: object, value: object) -> str | None:
    """What a properties file would say; raises `TypeError` for what it could not."""
    if not isinstance(name, str):
        raise TypeError(f"The name of a setting cannot be {name!r}: it must be text.")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None or isinstance(value, str):
        return value
    raise TypeError(
        f"The setting {name} cannot be {value!r}: it must be text, a number, True or False."
    )
