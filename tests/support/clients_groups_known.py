"""The third-party clients that can be members of groups."""

from tests.support.clients_groups_aiokafka import AiokafkaMember
from tests.support.clients_groups_confluent import ConfluentMember
from tests.support.clients_groups_contract import GroupMember
from tests.support.clients_groups_kafka_python import KafkaPythonMember

MEMBERS: list[type[GroupMember]] = [ConfluentMember, KafkaPythonMember, AiokafkaMember]
MEMBERS_BY_NAME = {each.name: each for each in MEMBERS}
