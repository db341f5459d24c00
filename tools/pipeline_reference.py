"""The reference page of pipelines' files, written from the tables of their fields.

`make docs` writes `docs/pipeline-reference.md`; a test fails when it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.pipeline.declared.fields.table import Field, FieldTable
from headwater.pipeline.declared.fields.tables import FIELD_TABLES

HEADING: Final = """# The file of a pipeline

Written by `make docs` from the tables in the source: every field of a pipeline's YAML file.
[pipelines.md](pipelines.md) explains how to use them. `headwater pipeline validate FILE` checks a
file against these tables, and says of every problem where it is.

The shortest pipeline copies a topic:

```yaml
sources:
  orders: {topic: orders}
sinks:
  copy: {topic: orders-copy, format: raw}
```

One that uses more of it, with a window, a join and a table:

```yaml
name: revenue
variables:
  topic: orders
sources:
  orders:
    topic: ${topic}
    schema: order_id STRING NOT NULL, customer_id STRING, amount DOUBLE, at TIMESTAMP
    watermark: {column: at, delay: 10 minutes}
    dead_letter: orders-rejected
  customers:
    lake: ./lake/customers
steps:
  single:
    deduplicate: [order_id]
    from: orders
  revenue: |
    SELECT window.start AS minute, country, sum(amount) AS revenue
    FROM single JOIN customers USING (customer_id)
    GROUP BY window(at, '1 minute'), country
sinks:
  table:
    lake: ./lake/revenue
    upsert: [minute, country]
  topic:
    topic: revenue
    key: country
    mode: update
```

Names of sources and steps are tables in SQL. A step reads what is named before it; a name of
several parts, such as `catalog.schema.table`, is looked for by Spark. A list of names may be
written as one string with commas, so that a variable can hold several.

Durations are written like `500 ms`, `10 seconds`, `1 hour 30 minutes` or `7 days`; times like
`2026-01-31T12:00:00Z` (UTC if no zone is named), `2 hours ago`, `now`, or in milliseconds.
"""


def pipeline_reference_page() -> str:
    """The whole page."""
    return HEADING + "".join(f"\n{_section(table)}" for table in FIELD_TABLES)


def _section(table: FieldTable) -> str:
    rows = "\n".join(_row(field, table) for field in table)
    return (
        f"## {table.section}\n\n{table.doc}\n\n"
        f"| Field | Type | Default | Meaning |\n| --- | --- | --- | --- |\n{rows}\n"
    )


def _row(field: Field, table: FieldTable) -> str:
    default = field.default or ("required" if field.required else "")
    return (
        f"| `{field.name}` | {field.kind.words} | {default} | {' '.join(_meaning(field, table))} |"
    )


def _meaning(field: Field, table: FieldTable) -> Iterator[str]:
    yield field.doc
    others = tuple(name for name in table.one_of if name not in field.only_with)
    if field.only_with and set(field.only_with) < set(table.one_of) and len(others) == 1:
        yield f"Not with {_either(others)}."
    elif field.only_with:
        yield f"Only with {_either(field.only_with)}."
    if field.example:
        yield f"Example: `{field.name}: {field.example}`"


def _either(names: tuple[str, ...]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


if __name__ == "__main__":
    print(pipeline_reference_page(), end="")
