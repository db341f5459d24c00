"""What holds from a broker's start: names and texts, checked together.

Each value is checked by its row when it is read; `check_static` checks what only several values
together can get wrong. The message of a `SettingError` is for whoever wrote the configuration.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from headwater.base.setting import refuse
from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.listener_settings import (
    advertised_endpoints,
    check_listener_names,
    client_endpoints,
    parsed,
)
from headwater.broker.settings.rows.cluster import check_cluster_settings
from headwater.broker.settings.rows.identity import IDENTITY_SETTINGS, broker_id_of
from headwater.broker.settings.rows.network import host_limits
from headwater.broker.settings.tables import BROKER_SETTINGS
from headwater.net.endpoint import split_address, split_url
from headwater.storage.log_settings import check_cordoned_directories, make_log_config


def static_of(texts: Mapping[str, str], source: str = "") -> SettingValues:
    """The values of a configuration that is there already as names and texts, checked."""
    values = BROKER_SETTINGS.parse(texts, source)
    check_static(values)
    return values


def check_static(values: SettingValues) -> None:
    """Refuse values that contradict each other; raises `SettingError`."""
    refuse(contradictions(values))


def contradictions(values: SettingValues, unread: Collection[str] = ()) -> list[str]:
    """What is wrong with values taken together, where those of `unread` could not be read."""
    found: list[str] = []
    for check_values in _CHECKS:
        # An id that cannot be read is not one that is missing.
        if check_values is broker_id_of and any(name in IDENTITY_SETTINGS for name in unread):
            continue
        try:
            check_values(values)
        except SettingError as error:
            found += error.sentences
    return found


def _check_metrics_address(values: SettingValues) -> None:
    if values.text("metrics.listen"):
        parsed("metrics.listen", split_address, values.text("metrics.listen"))


def _check_telemetry_address(values: SettingValues) -> None:
    if values.text("telemetry.otlp.endpoint"):
        parsed("telemetry.otlp.endpoint", split_url, values.text("telemetry.otlp.endpoint"))


_CHECKS: Final[tuple[Callable[[SettingValues], object], ...]] = (
    broker_id_of,
    check_cordoned_directories,
    make_log_config,
    client_endpoints,
    check_listener_names,
    advertised_endpoints,
    _check_metrics_address,
    _check_telemetry_address,
    host_limits,
    check_cluster_settings,
)
