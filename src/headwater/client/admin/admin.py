"""`Admin`: everything that can be asked of or changed in a cluster as a whole.

async with ClusterConnection("127.0.0.1:9092") as connection:
    admin = Admin(connection)
    require_all(await admin.create_topics([NewTopic("orders", partition_count=3)]))
"""

from headwater.client.admin.brokers import BrokerOperations
from headwater.client.admin.configs import ConfigOperations
from headwater.client.admin.group_offsets import GroupOffsetOperations
from headwater.client.admin.groups import GroupOperations
from headwater.client.admin.offsets import OffsetOperations
from headwater.client.admin.topics import TopicOperations
from headwater.client.admin.transactions import TransactionOperations


class Admin(
    TopicOperations,
    ConfigOperations,
    OffsetOperations,
    BrokerOperations,
    GroupOperations,
    GroupOffsetOperations,
    TransactionOperations,
):
    """The operations of all areas, on one `ClusterConnection`."""
