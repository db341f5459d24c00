"""Where in the metadata store things are: the paths that Kafka uses in ZooKeeper."""

from typing import Final
from urllib.parse import quote, unquote

CLUSTER_ID: Final = "/cluster/id"
#: Ours: what brokers prove to each other with that they are brokers of this cluster.
CLUSTER_SECRET: Final = "/cluster/secret"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
#: Below it, the brokers that came back without having been stopped in order.
UNCLEAN_BROKERS: Final = "/brokers/unclean"
BROKER_SEQUENCE: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
CLIENT_METRICS_CONFIGS: Final = "/config/client-metrics"
GROUP_CONFIGS: Final = "/config/groups"
DELETED_TOPICS: Final = "/admin/delete_topics"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"

#: Ours: that metadata is being imported. Brokers do not join such a cluster.
IMPORT: Final = "/metadata_import"

#: What stands for all brokers among the names below `BROKER_CONFIGS`.
DEFAULT_ENTITY: Final = "<default>"

#: The nodes that a cluster has from its beginning, parents first.
STANDING_NODES: Final = (
    "/cluster",
    "/brokers",
    BROKER_IDS,
    UNCLEAN_BROKERS,
    TOPICS,
    BROKER_SEQUENCE,
    "/config",
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    "/admin",
    DELETED_TOPICS,
)

#: All that a cluster keeps is these nodes and what is below them, but for ephemeral ones. The root
#: of a ZooKeeper may hold other things too.
KEPT_NODES: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    CONTROLLER_EPOCH,
    PRODUCER_ID_BLOCK,
)


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def unclean_broker_path(broker_id: int) -> str:
    return f"{UNCLEAN_BROKERS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker_id: int | None) -> str:
    """Of one broker, or with None of all of them."""
    return f"{BROKER_CONFIGS}/{DEFAULT_ENTITY if broker_id is None else broker_id}"


def client_metrics_config_path(name: str) -> str:
    return f"{CLIENT_METRICS_CONFIGS}/{node_name(name)}"


def group_config_path(group_id: str) -> str:
    return f"{GROUP_CONFIGS}/{node_name(group_id)}"


def node_name(name: str) -> str:
    """The name of a node for something that may be called anything: slashes, say, are escaped."""
    # These two mean directories, and are no names of nodes.
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def name_of_node(node: str) -> str:
    """What `node_name` made the name of; ValueError for a name that it does not make."""
    name = unquote(node, errors="strict")
    if not name or node_name(name) != node:
        raise ValueError(f"{node!r} is no name of a node for settings")
    return name


def topic_deletion_path(topic: str) -> str:
    return f"{DELETED_TOPICS}/{topic}"
