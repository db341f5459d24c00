"""The third-party clients that can be members of groups."""

from tests.support.clients_groups_aiokafka import AiokafkaMember
from tests.support.clients_groups_confluent import ConfluentMember
from tests.support.clients_groups_contract import GroupMember
from tests.support.clients_groups_kafka_python import KafkaPythonMember

MEMBERS: list[type[GroupMember]] = [ConfluentMember, KafkaPythonMember, AiokafkaMember]
MEMBERS_BY_NAME = {each.name: each for each in MEMBERS}
#: Those whose members always find together. One of kafka-python may lose a join whose answer comes
#: between two polls: it then has no partitions, and sends no heartbeats until it is restarted.
REBALANCING: list[type[GroupMember]] = [ConfluentMember, AiokafkaMember]
