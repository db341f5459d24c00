"""What `headwater serve` says before and after its brokers have started.

Before: what does not depend on anything that could fail or take long, so that whoever waits knows
what for. After: where each broker listens and which cluster it is in, and the one line that scripts
wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.base.settings import SettingValues
from headwater.broker.server import BrokerServer
from headwater.broker.start.descriptor_shares import share_descriptors
from headwater.cli.serve.durability_promise import durability_promise
from headwater.cli.serve.open_files import DESCRIPTORS_MIN
from headwater.storage.log_settings import log_directory_paths


def store_text(settings: SettingValues, shared_path: str | None) -> str:
    """Where the cluster's metadata is, and until when a broker counts as alive."""
    connect = settings.optional_text("zookeeper.connect")
    if connect:
        session_s = settings.integer("zookeeper.session.timeout.ms") / 1000
        return f"ZooKeeper {connect}, sessions of {session_s:g} s"
    if shared_path is not None:
        return f"{shared_path}, shared by the brokers of this process"
    return ""


def introduction(
    version: str, brokers: Sequence[SettingValues], store: str, descriptors_max: int
) -> Iterator[str]:
    """The lines for people, while the brokers start; each may open so many files."""
    settings = brokers[0]
    promise = durability_promise(
        settings.text("acks.all.flush"),
        settings.integer("log.flush.interval.messages"),
        is_alone=not store,
        min_insync_replicas=settings.integer("min.insync.replicas"),
    )
    yield f"Headwater {version}"
    for each in brokers:
        yield f"  data        {', '.join(log_directory_paths(each))}"
    if store:
        yield f"  metadata    {store}"
    yield f"  durability  {promise.sentence}"
    if descriptors_max < DESCRIPTORS_MIN:
        shares = share_descriptors(descriptors_max, settings.integer("log.handles.max"))
        yield (
            f"  open files  {descriptors_max:,} at most, which leaves {shares.connections_max:,} "
            f"for connections: raise the hard limit for more."
        )


def announcement(servers: Sequence[BrokerServer], age_s: float) -> Iterator[str]:
    """The lines for when they serve; the last one is for scripts too."""
    for server in servers:
        for name, address in server.addresses_by_name():
            yield f"  listening   {address} ({name})"
        if server.metrics_address is not None:
            yield f"  metrics     http://{server.metrics_address}/metrics"
    contexts = [server.context for server in servers]
    image = contexts[0].image
    if len(servers) > 1 or contexts[0].settings.optional_text("zookeeper.connect"):
        for context in contexts:
            epoch = context.member.broker.broker_epoch
            yield (
                f"  cluster     {context.cluster_id}: broker {context.node_id}, epoch {epoch}; "
                f"{_brokers(len(image.brokers))}, controller {image.controller_id}"
            )
    addresses = ", ".join(address for server in servers for address in server.addresses)
    ids = ", ".join(str(context.node_id) for context in contexts)
    partition_count = sum(len(context.partitions) for context in contexts)
    yield (
        f"Headwater is ready: {addresses} ({'broker' if len(servers) == 1 else 'brokers'} {ids}, "
        f"cluster {contexts[0].cluster_id}, {partition_count:,} partitions, started in "
        f"{age_s:.2f} s)"
    )


def _brokers(count: int) -> str:
    return "1 broker" if count == 1 else f"{count} brokers"
