"""The reference pages of clients, settings and errors, written from the tables in the source.

`make docs` writes `docs/client-settings.md` and `docs/client-errors.md`; a test fails when one of
them is out of date.
"""

import sys
from typing import Final

from headwater.base.settings import SettingTable, render_markdown
from headwater.client.kafka_errors import class_by_code
from headwater.client.settings.admin_settings import ADMIN_ONLY_SETTINGS
from headwater.client.settings.common_settings import COMMON_SETTINGS
from headwater.client.settings.consumer_settings import CONSUMER_ONLY_SETTINGS
from headwater.client.settings.producer_settings import PRODUCER_ONLY_SETTINGS
from headwater.client.settings.trace_settings import TRACE_SETTINGS
from headwater.client.spool.settings import SPOOL_SETTINGS
from tools.settings_reference import without_effect_table

SETTINGS_HEADING: Final = """# Settings of clients

Written by `make docs` from the tables in the source. Names, types, defaults and bounds are those of
Kafka 4.1's clients. Kafka does not have `buffer.full.policy`, `corrupt.batch.policy`,
`exit.flush.timeout.ms` and the settings of the spool and of the trace.

A client takes them in a mapping, with Kafka's names, or as keywords with underscores for dots; the
keywords win: `Producer({"linger.ms": 20}, batch_size=65536)`. Values may be text or Python values:
`True`, `5`, `0.5`, a list of text, a `timedelta` for a time, `None` for the default. An unknown
name is refused, and the message suggests the nearest one.

Some settings are accepted and have no effect, so that a configuration that was written for the Java
clients works as it is. The last table says why.
"""

ERRORS_HEADING: Final = """# Errors of clients

Written by `make docs` from the tables in the source: every error code of Kafka 4.4, and its class
in `headwater.errors`. All of them are `KafkaError`s, with a `code`, `retriable` and `advice`. Those
that may pass when the same is tried again are `RetriableError`s: by the time you see one, the
client has tried for as long as its settings say.
"""

AREAS: Final[tuple[tuple[str, SettingTable], ...]] = (
    ("For every client", COMMON_SETTINGS),
    ("For a producer", PRODUCER_ONLY_SETTINGS),
    ("For a producer with a spool", SPOOL_SETTINGS),
    ("For a consumer", CONSUMER_ONLY_SETTINGS),
    ("For the trace of a producer or a consumer", TRACE_SETTINGS),
    ("For an admin", ADMIN_ONLY_SETTINGS),
)


def client_settings_page() -> str:
    """The whole page."""
    sections = [(title, render_markdown(table, with_scope=False)) for title, table in AREAS]
    reasons = {
        f"{row.name} ({table.area})": row.without_effect
        for _, table in AREAS
        for row in table
        if row.without_effect
    }
    sections.append(("Taken without effect", without_effect_table(reasons)))
    return "\n".join((SETTINGS_HEADING, *(f"## {title}\n\n{text}" for title, text in sections)))


def client_errors_page() -> str:
    """The whole page."""
    lines = [
        "| Code | Class | Retriable | Meaning | What to do |",
        "| --- | --- | --- | --- | --- |",
    ]
    for code, found in sorted(class_by_code().items()):
        retriable = "yes" if code.retriable else "no"
        lines.append(
            f"| {int(code)} | `{found.__name__}` | {retriable} | {code.message} | {found.advice} |"
        )
    return ERRORS_HEADING + "\n" + "\n".join(lines) + "\n"


PAGES: Final = {"settings": client_settings_page, "errors": client_errors_page}

if __name__ == "__main__":
    print(PAGES[sys.argv[1]](), end="")
