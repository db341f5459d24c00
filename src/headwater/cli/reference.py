"""The settings reference: `docs/settings.md`, written from the tables that the code reads.

`make docs` writes the page; a test fails when it is out of date.
"""

from headwater.base.settings import render_markdown
from headwater.storage.log_settings import LOG_SETTINGS

HEADING = """# Settings

Written by `make docs` from the tables in the source; names, defaults and bounds are Kafka's.

A broker's settings stand in a properties file. Those with a topic name can also be set for one
topic, which then has its own value; `log.retention.ms` beats `log.retention.minutes` beats
`log.retention.hours`, and `log.roll.ms` beats `log.roll.hours`.
"""


def settings_page() -> str:
    """The whole page."""
    topic = LOG_SETTINGS.topic_table("topic")
    return "\n".join(
        (
            HEADING,
            "## For a broker: the log",
            "",
            render_markdown(LOG_SETTINGS),
            "## For a topic",
            "",
            render_markdown(topic),
        )
    )


if __name__ == "__main__":
    print(settings_page(), end="")
