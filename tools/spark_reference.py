"""The tables of options in docs/spark.md, written from the tables in the source.

The page is written by people, but for what lies between two marks: `make docs` fills it in, and a
test fails when it is out of date.

    <!-- options: reading -->
    <!-- end of options -->
"""

import re
import sys
from pathlib import Path
from typing import Final

from headwater.pipeline.connector.option_table import Option, OptionTable
from headwater.pipeline.connector.source_options import SOURCE_OPTIONS
from headwater.pipeline.sink.sink_options import SINK_OPTIONS

TABLES: Final = {"reading": SOURCE_OPTIONS, "writing": SINK_OPTIONS}
END: Final = "<!-- end of options -->"

_MARKED: Final = re.compile(rf"(<!-- options: (\w+) -->\n).*?({END})", re.DOTALL)


def with_tables(page: str) -> str:
    """The page with every marked part filled in."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{options_table(TABLES[found[2]])}\n{END}", page)


def options_table(table: OptionTable) -> str:
    """All options that may be given, then those that are refused."""
    given = [row for row in table if not row.refused]
    refused = [row for row in table if row.refused]
    lines = ["| Option | For | Default | Meaning |", "| --- | --- | --- | --- |"]
    lines += [_line(row) for row in given]
    lines += ["", "Refused:", ""]
    lines += [f"- `{row.name}`: {row.refused}" for row in refused]
    return "\n".join(lines) + "\n"


def _line(row: Option) -> str:
    effect = f" Without effect: {row.without_effect}" if row.without_effect else ""
    text = f"{row.doc}{effect}".replace("|", "\\|")
    return f"| `{row.name}` | {row.mode} | {row.default} | {text} |"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_tables(path.read_text()))
