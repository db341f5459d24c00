"""What can keep a broker from starting, apart from addresses and settings."""

from headwater.base.background_tasks import BackgroundTaskError
from headwater.base.errors import KafkaError
from headwater.cluster.node_documents import CorruptNodeError
from headwater.cluster.store.errors import StoreError, StoreFileError
from headwater.storage.directories.directory_ownership import LogDirectoryInUseError
from headwater.storage.directories.log_directories import NoLogDirectoryError
from headwater.storage.errors import CorruptFileError, InconsistentBrokerMetadataError

#: What can be wrong with the place where a broker keeps its data, or with its cluster.
START_FAULTS = (
    BackgroundTaskError,
    CorruptFileError,
    CorruptNodeError,
    InconsistentBrokerMetadataError,
    # What the cluster says: another broker has this one's id, the store belongs to others.
    KafkaError,
    LogDirectoryInUseError,
    NoLogDirectoryError,
    StoreError,
    StoreFileError,
)


class StartError(Exception):
    """The broker cannot start; the message says why in one sentence."""
