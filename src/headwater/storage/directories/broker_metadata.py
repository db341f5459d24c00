"""`meta.properties`: to which broker and cluster a log directory belongs.

The file stands at the top of every log directory and is written when the directory is first used.
It keeps a broker from serving another broker's data, or another cluster's, after a mix-up of disks
or settings. Kafka's version 1 has `node.id`, `cluster.id` and, for telling a broker's directories
apart, `directory.id`; version 0, from the time of ZooKeeper, has `broker.id` and may lack the rest.
"""

from __future__ import annotations

import re
import uuid
from typing import Final, NamedTuple

from headwater.base.ids import topic_id_from_text, topic_id_to_text
from headwater.base.properties_file import read_properties_file
from headwater.base.setting import SettingError
from headwater.storage.checkpoints import parse_integer
from headwater.storage.disk.files import FileSystem, read_bytes, write_atomically
from headwater.storage.errors import CorruptMetadataError, InconsistentBrokerMetadataError

META_PROPERTIES: Final = "meta.properties"

_ESCAPES: Final = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}
_SPECIAL: Final = re.compile(r"[\\=:#! \t\n\r\f]")


class BrokerMetadata(NamedTuple):
    """What `meta.properties` says; version 0 may leave each of the ids open."""

    cluster_id: str | None
    node_id: int | None
    directory_id: uuid.UUID | None = None
    version: int = 1

    def check_owner(self, directory: str, *, cluster_id: str, node_id: int) -> None:
        """Raise `InconsistentBrokerMetadataError` if the directory is somebody else's."""
        if self.node_id not in (None, node_id):
            raise InconsistentBrokerMetadataError(
                f"The log directory {directory} belongs to broker {self.node_id}, and this is "
                f"broker {node_id}: check node.id and log.dirs."
            )
        if self.cluster_id not in (None, cluster_id):
            raise InconsistentBrokerMetadataError(
                f"The log directory {directory} belongs to cluster {self.cluster_id}, and this "
                f"broker joins cluster {cluster_id}: check log.dirs and the cluster's address."
            )


def read_broker_metadata(files: FileSystem, directory: str) -> BrokerMetadata | None:
    """The directory's metadata, None if it has none yet."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        data = read_bytes(files, path)
    except FileNotFoundError:
        return None
    try:
        return _from_properties(read_properties_file(data.decode(), "the file"))
    except (ValueError, SettingError) as error:
        raise CorruptMetadataError(f"{path}: {str(error).rstrip('.')}.") from error


def write_broker_metadata(files: FileSystem, directory: str, metadata: BrokerMetadata) -> None:
    """Write the directory's metadata durably; a crash leaves the old file or the new one."""
    properties = {}
    if metadata.node_id is not None:
        properties["broker.id" if metadata.version == 0 else "node.id"] = str(metadata.node_id)
    if metadata.directory_id is not None:
        properties["directory.id"] = topic_id_to_text(metadata.directory_id)
    properties["version"] = str(metadata.version)
    if metadata.cluster_id is not None:
        properties["cluster.id"] = metadata.cluster_id
    write_atomically(files, f"{directory}/{META_PROPERTIES}", _format_properties(properties))


def _from_properties(properties: dict[str, str]) -> BrokerMetadata:
    version = parse_integer(properties.get("version", "0"), 32)
    if version not in (0, 1):
        raise ValueError(f"version {version} is not known")
    node_key = "broker.id" if version == 0 else "node.id"
    cluster_id = properties.get("cluster.id")
    node_id = parse_integer(properties[node_key], 32) if node_key in properties else None
    for name, value in (("cluster.id", cluster_id), (node_key, node_id)):
        if value is None and version == 1:
            raise ValueError(f"{name} is missing")
    directory_id = properties.get("directory.id")
    return BrokerMetadata(
        cluster_id,
        node_id,
        topic_id_from_text(directory_id) if directory_id is not None else None,
        version,
    )


def _format_properties(properties: dict[str, str]) -> bytes:
    """The content of a properties file; it opens with a comment line, as Java writes one."""
    lines = [f"{name}={_escape(value)}" for name, value in properties.items()]
    return "".join(f"{line}\n" for line in ("#", *lines)).encode()


def _escape(value: str) -> str:
    return _SPECIAL.sub(lambda match: "\\" + _ESCAPES.get(match[0], match[0]), value)
