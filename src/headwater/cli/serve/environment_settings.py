"""Settings of a broker from environment variables, as containers and units have them.

A variable is named as the setting, in capitals, with underscores for dots and HEADWATER_ in front:
HEADWATER_LOG_RETENTION_MS is log.retention.ms. An empty one says nothing, so that a template may
name a variable that nobody has set. One that is no setting is told where it looks like a mistyped
one; other programs may have variables with that beginning too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from headwater.base.setting_values import nearest_settings
from headwater.broker.settings.tables import BROKER_SETTINGS

PREFIX: Final = "HEADWATER_"
SOURCE: Final = "the environment"
#: What other parts of Headwater read.
_OTHERS: Final = frozenset({"HEADWATER_BOOTSTRAP_SERVER", "HEADWATER_CACHE", "HEADWATER_DEBUG"})


def variable_name(setting: str) -> str:
    """The variable that a setting is read from."""
    return PREFIX + setting.upper().replace(".", "_").replace("-", "_")


def environment_settings(environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The settings that variables give, and a warning for each that may have been meant as one."""
    names = {variable_name(row.name): row.name for row in BROKER_SETTINGS}
    texts: dict[str, str] = {}
    warnings: list[str] = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX) or not text:
            continue
        if variable in names:
            texts[names[variable]] = text
        elif variable not in _OTHERS and (near := _nearest(variable, names)):
            warnings.append(
                f"The environment variable {variable} is no setting, and is left out; did you mean "
                f"{' or '.join(near)}?"
            )
    return texts, warnings


def _nearest(variable: str, names: Iterable[str]) -> list[str]:
    # Without the beginning, which all have in common.
    known = [name.removeprefix(PREFIX) for name in names]
    return [PREFIX + name for name in nearest_settings(variable.removeprefix(PREFIX), known)]
