"""The settings reference: `docs/settings.md`, written from the tables that the code reads.

`make docs` writes the page; a test fails when it is out of date.
"""

from collections.abc import Mapping
from typing import Final

from headwater.base.settings import SettingTable, render_markdown
from headwater.broker.settings.rows.accepted import ACCEPTED_SETTINGS
from headwater.broker.settings.rows.audit import AUDIT_SETTINGS
from headwater.broker.settings.rows.client_metrics import CLIENT_METRICS_SETTINGS
from headwater.broker.settings.rows.cluster import CLUSTER_SETTINGS
from headwater.broker.settings.rows.coordinators import COORDINATOR_SETTINGS
from headwater.broker.settings.rows.delay_service import DELAY_SERVICE_SETTINGS
from headwater.broker.settings.rows.groups import GROUP_SETTINGS
from headwater.broker.settings.rows.identity import IDENTITY_SETTINGS
from headwater.broker.settings.rows.metrics import METRICS_SETTINGS
from headwater.broker.settings.rows.network import NETWORK_SETTINGS
from headwater.broker.settings.rows.replication import REPLICATION_SETTINGS
from headwater.broker.settings.rows.requests import REQUEST_SETTINGS
from headwater.broker.settings.rows.telemetry import TELEMETRY_SETTINGS
from headwater.broker.settings.rows.topic_creation import TOPIC_CREATION_SETTINGS
from headwater.broker.settings.rows.trace import TRACE_SETTINGS
from headwater.broker.settings.tables import BROKER_SETTINGS, TOPIC_SETTINGS
from headwater.storage.log_settings import LOG_SETTINGS

HEADING: Final = """# Settings

Written by `make docs` from the tables in the source. Names, types, defaults and bounds are those of
Kafka 4.4, but for settings that say "not in Kafka".

A broker reads its settings from a properties file (`headwater serve --config FILE`) and from
`--set name=value`, which wins. Settings that say "cluster-wide" can also be changed while it runs,
for all brokers or for one. What was set for one broker beats what was set for all, that beats what
the broker was started with, and that beats the default.

A topic has the settings of its own table, and so has a consumer group. Where they set none
themselves they follow their broker. Where the same thing can be said in several units the finer
one wins: `log.retention.ms` beats `log.retention.minutes` beats `log.retention.hours`, and
`log.roll.ms` beats `log.roll.hours`.

Some settings are taken without effect, so that a configuration written for Kafka works as it is.
The last table says which, and why.
"""

_AREAS: Final[tuple[tuple[str, SettingTable], ...]] = (
    ("who it is", IDENTITY_SETTINGS),
    ("network and threads", NETWORK_SETTINGS),
    ("creating and deleting topics", TOPIC_CREATION_SETTINGS),
    ("requests", REQUEST_SETTINGS),
    ("durability and replication", REPLICATION_SETTINGS),
    ("its cluster", CLUSTER_SETTINGS),
    ("logs", LOG_SETTINGS),
    ("groups, offsets and transactions", COORDINATOR_SETTINGS),
    ("metrics", METRICS_SETTINGS),
    ("metrics of clients", TELEMETRY_SETTINGS),
    ("audit", AUDIT_SETTINGS),
    ("trace", TRACE_SETTINGS),
    ("the delay service beside it", DELAY_SERVICE_SETTINGS),
    ("taken from configurations of Kafka", ACCEPTED_SETTINGS),
)


def settings_page() -> str:
    """The whole page."""
    sections = [(f"For a broker: {area}", render_markdown(table)) for area, table in _AREAS]
    sections.append(("For a topic", render_markdown(TOPIC_SETTINGS)))
    sections.append(("For a group", render_markdown(GROUP_SETTINGS, with_scope=False)))
    subscriptions = render_markdown(CLIENT_METRICS_SETTINGS, with_scope=False)
    sections.append(("For a subscription to clients' metrics", subscriptions))
    sections.append(("Taken without effect", _without_effect()))
    return "\n".join((HEADING, *(f"## {title}\n\n{text}" for title, text in sections)))


def without_effect_table(reasons: Mapping[str, str]) -> str:
    """Settings that change nothing, and why."""
    lines = ["| Name | Why |", "| --- | --- |"]
    for name, reason in sorted(reasons.items()):
        shown, _, suffix = name.partition(" ")
        lines.append(f"| `{shown}`{f' {suffix}' if suffix else ''} | {reason} |")
    return "\n".join(lines) + "\n"


def _without_effect() -> str:
    reasons = {row.name: row.without_effect for row in BROKER_SETTINGS if row.without_effect}
    reasons |= {
        f"{row.name} (topic)": row.without_effect
        for row in TOPIC_SETTINGS
        if row.without_effect and row.name not in reasons
    }
    reasons |= {
        f"{row.name} (client metrics)": row.without_effect
        for row in CLIENT_METRICS_SETTINGS
        if row.without_effect
    }
    return without_effect_table(reasons)


if __name__ == "__main__":
    print(settings_page(), end="")
