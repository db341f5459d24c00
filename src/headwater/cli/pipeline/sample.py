"""`headwater pipeline sample`: fills topics for built-in pipelines, and says what to run then."""

from __future__ import annotations

from headwater.base.counted import counted
from headwater.cli.options.cluster import bootstrap_servers
from headwater.pipeline.builtin.sample import send_sample


def print_sample(bootstrap_server: str | None, prefix: str, order_count: int) -> None:
    """Send the records, and tell of them."""
    servers = bootstrap_servers(bootstrap_server)
    sample = send_sample(servers, prefix=prefix, order_count=order_count)
    print(
        f"Wrote {counted(sample.orders_count, 'record')} to {sample.orders_topic} and "
        f"{counted(sample.payments_count, 'record')} to {sample.payments_topic}; "
        f"{sample.malformed_count:,} of them {'is' if sample.malformed_count == 1 else 'are'} "
        "malformed on purpose."
    )
    print(f"Try: headwater pipeline run aggregate --once --set orders={sample.orders_topic}")
