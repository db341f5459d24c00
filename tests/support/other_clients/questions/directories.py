"""Questions about a broker whose log directories are cordoned: see `questions`."""

from __future__ import annotations

from headwater.base.errors import ErrorCode
from headwater.testing.broker_process import wait_until
from headwater.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headwater.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from headwater.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headwater.wire.messages.metadata import MetadataRequest
from tests.support.other_clients.questions.questions import Conversation

BROKER = 4
SET, DELETE = 0, 1


def cordoned_directories(conversation: Conversation) -> None:
    talk = conversation
    talk.create("before")
    described = DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic="before", partitions=[0])]
    )
    path = talk.connection.ask(described, 4).results[0].log_dir
    [node] = talk.connection.ask(MetadataRequest(topics=[]), 12).brokers

    def set_cordoned(label: str, text: str | None) -> None:
        operation = DELETE if text is None else SET
        config = AlterableConfig(name="cordoned.log.dirs", config_operation=operation, value=text)
        resource = AlterConfigsResource(
            resource_type=BROKER, resource_name=str(node.node_id), configs=[config]
        )
        talk.ask(f"cordon {label}", lambda _: IncrementalAlterConfigsRequest(resources=[resource]))

    def wait_until_it_holds(expected: ErrorCode) -> None:
        """The controller of Apache Kafka hears of it with a heartbeat."""
        topic = CreatableTopic(name="probe", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=9_000, validate_only=True)
        wait_until(
            lambda: talk.connection.ask(request, 7).topics[0].error_code == expected,
            "the controller knows",
        )

    set_cordoned("a stranger", "/no/such/directory")
    set_cordoned("all and one", f"*,{path}")
    set_cordoned("the only one", path)
    wait_until_it_holds(ErrorCode.INVALID_REPLICATION_FACTOR)
    talk.ask("directories", lambda _: described)
    set_cordoned("all", "*")
    talk.ask(
        "create",
        lambda version: CreateTopicsRequest(
            topics=[CreatableTopic(name=f"none-{version}", num_partitions=2, replication_factor=1)],
            timeout_ms=9_000,
        ),
    )
    talk.ask(
        "create by hand",
        lambda version: CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=f"by-hand-{version}",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreatableReplicaAssignment(partition_index=0, broker_ids=[node.node_id])
                    ],
                )
            ],
            timeout_ms=9_000,
        ),
    )
    growing = CreatePartitionsTopic(name="before", count=3, assignments=None)
    talk.ask("grow", lambda _: CreatePartitionsRequest(topics=[growing], timeout_ms=9_000))
    moved = [AlterReplicaLogDirTopic(name="before", partitions=[0])]
    there = AlterReplicaLogDir(path=path, topics=moved)
    talk.ask("move there", lambda _: AlterReplicaLogDirsRequest(dirs=[there]))
    set_cordoned("none", "")
    wait_until_it_holds(ErrorCode.NONE)
    set_cordoned("nothing", None)
    talk.ask("directories again", lambda _: described)
