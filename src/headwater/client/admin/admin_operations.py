"""`AdminOperations`: all that can be asked of or changed in a cluster, on a connection of its user.

async with ClusterConnection("127.0.0.1:9092") as connection:
    operations = AdminOperations(connection)
    await operations.create_topics([NewTopic("orders", partition_count=3)])
"""

from headwater.client.admin.brokers import BrokerOperations
from headwater.client.admin.configs import ConfigOperations
from headwater.client.admin.delayed import DelayedOperations
from headwater.client.admin.elections import ElectionOperations
from headwater.client.admin.group_offsets import GroupOffsetOperations
from headwater.client.admin.groups import GroupOperations
from headwater.client.admin.offsets import OffsetOperations
from headwater.client.admin.prepared_transactions import PreparedTransactionOperations
from headwater.client.admin.reassignments import ReassignmentOperations
from headwater.client.admin.topics import TopicOperations


class AdminOperations(
    TopicOperations,
    ConfigOperations,
    OffsetOperations,
    DelayedOperations,
    BrokerOperations,
    ElectionOperations,
    ReassignmentOperations,
    GroupOperations,
    GroupOffsetOperations,
    PreparedTransactionOperations,
):
    """The operations of all areas, on one `ClusterConnection`."""
