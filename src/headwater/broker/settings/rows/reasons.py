"""Why a setting that Kafka has changes nothing here, where several rows share the reason.

A row names one of these in `without_effect`; who gives the setting its effect removes that from the
row, and the settings page follows.
"""

from typing import Final

SESSIONS_TELL: Final = (
    "A broker is alive as long as its session with ZooKeeper: see zookeeper.session.timeout.ms."
)
ONE_LOOP: Final = "One event loop does this; more cores are used by more brokers."
NO_TIERED_STORAGE: Final = "There is no tiered storage: all of a log is on the broker's own disks."
NO_QUORUM: Final = "There is no quorum of controllers; a metadata store coordinates the brokers."
NO_SHARE_GROUPS: Final = "There are no share groups."
NO_STREAMS_GROUPS: Final = "There are no groups of Kafka Streams."
