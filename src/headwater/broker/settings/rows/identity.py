"""Who a broker is: its id, how it gets one, and where it stands.

`broker.id` and `node.id` are two names of the same thing; `broker_id_of` settles which holds.
"""

from typing import Final

from headwater.base.settings import Setting, SettingError, SettingKind, SettingTable, SettingValues

_INT, _STRING, _BOOLEAN = SettingKind.INT, SettingKind.STRING, SettingKind.BOOLEAN

# fmt: off
IDENTITY_SETTINGS: Final = SettingTable("broker", [
    Setting("broker.id", _INT, -1, "The number of this broker in its cluster; -1 for one that is "
            "made up at the first start and kept.", lower=-1),
    Setting("node.id", _INT, None, "Another name of broker.id, the one that Kafka's own "
            "configuration files use.", lower=0),
    Setting("broker.id.generation.enable", _BOOLEAN, True, "Whether a broker without an id makes "
            "one up; otherwise it does not start."),
    Setting("reserved.broker.max.id", _INT, 1000, "The largest id that may be configured; those "
            "that are made up begin above it.", lower=0),
    Setting("broker.rack", _STRING, None, "The rack or zone of this broker. Clients are told, and "
            "the replicas of a partition are spread over racks."),
    Setting("inter.broker.listener.name", _STRING, None, "The listener on which other brokers "
            "reach this one."),
])
# fmt: on


def broker_id_of(values: SettingValues) -> int:
    """The configured id, -1 where none is; raises `SettingError` if the two names disagree."""
    broker_id, node_id = values.integer("broker.id"), values.optional_integer("node.id")
    if node_id is not None and broker_id >= 0 and broker_id != node_id:
        raise SettingError(
            f"The settings broker.id and node.id are one thing, but they are {broker_id} and "
            f"{node_id}."
        )
    chosen = broker_id if node_id is None else node_id
    largest = values.integer("reserved.broker.max.id")
    generates = values.boolean("broker.id.generation.enable")
    if generates and chosen > largest:
        raise SettingError(
            f"The broker id {chosen} is above {largest}, where ids that are made up begin; choose "
            "a smaller one, or raise reserved.broker.max.id."
        )
    if chosen < 0 and not generates:
        raise SettingError(
            "The broker has no id: set broker.id, or let one be made up with "
            "broker.id.generation.enable=true."
        )
    return chosen
