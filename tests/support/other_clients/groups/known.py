"""The clients that can be members of groups: other people's, and our own."""

from tests.support.other_clients.groups.aiokafka import AiokafkaMember
from tests.support.other_clients.groups.confluent import ConfluentMember
from tests.support.other_clients.groups.contract import GroupMember
from tests.support.other_clients.groups.headwater import HeadwaterMember
from tests.support.other_clients.groups.kafka_python import KafkaPythonMember

MEMBERS: list[type[GroupMember]] = [
    ConfluentMember,
    KafkaPythonMember,
    AiokafkaMember,
    HeadwaterMember,
]
MEMBERS_BY_NAME = {each.name: each for each in MEMBERS}
#: Those whose members always find together. kafka-python 3.0.12 forgets a join that is under way
#: when `poll` returns: `join_group_async` takes `_join_task` up again only while `need_rejoin`
#: holds, and where a leader joins again because its metadata changed, that ends as soon as the task
#: itself stores the new `_assignment_snapshot` (`_perform_assignment`). The finished join is never
#: looked at, so the member has no partitions, stays "rebalancing" and sends no heartbeats until it
#: is closed. Of groups of three that poll for 20 ms and then work for 50, one in six forms with
#: such a member, with Apache Kafka as with Headwater; polling for longer makes it rare.
REBALANCING: list[type[GroupMember]] = [ConfluentMember, AiokafkaMember, HeadwaterMember]
