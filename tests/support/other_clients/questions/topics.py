"""Questions about topics and about the cluster: see `questions`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headwater.testing.broker_process import wait_until
from headwater.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headwater.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headwater.wire.messages.describe_cluster import DescribeClusterRequest
from headwater.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from headwater.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from headwater.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headwater.wire.messages.init_producer_id import InitProducerIdRequest
from headwater.wire.messages.list_config_resources import ListConfigResourcesRequest
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.messages.unregister_broker import UnregisterBrokerRequest
from headwater.wire.schema import Message
from tests.support.other_clients.questions.questions import STRANGER, Conversation

TOPIC, BROKER, LOGGER = 2, 4, 8


def metadata(conversation: Conversation) -> None:
    conversation.create("one", 3)
    conversation.create("two", 1)

    def of(*names: str | None, **options: bool) -> Callable[[int], MetadataRequest]:
        topics = [MetadataRequestTopic(name=name) for name in names]
        return lambda _: MetadataRequest(topics=topics, **options)

    conversation.ask("some", of("one", "two"))
    conversation.ask("twice", of("one", "one"))
    conversation.ask("all", lambda _: MetadataRequest(topics=None), range(1, 14))
    conversation.ask("none", of())
    for name in ("", ".", "..", "a b", "x" * 250):
        conversation.ask(f"a bad name {name[:3]!r}", of(name))
    conversation.ask("unknown", of("stranger", allow_auto_topic_creation=False), range(4, 14))
    by_id = [MetadataRequestTopic(name=None, topic_id=STRANGER)]
    conversation.ask("an unknown id", lambda _: MetadataRequest(topics=by_id), range(12, 14))
    both = [MetadataRequestTopic(name="one", topic_id=STRANGER)]
    conversation.ask("name and id", lambda _: MetadataRequest(topics=both), range(12, 14))


def create_topics(conversation: Conversation) -> None:
    def one(
        label: str,
        *,
        partitions: int = 1,
        replicas: int = 1,
        assignments: dict[int, list[int]] | None = None,
        settings: dict[str, str | None] | None = None,
        validate_only: bool = False,
        name: str | None = None,
    ) -> None:
        def make(version: int) -> CreateTopicsRequest:
            topic = CreatableTopic(
                name=f"{label.replace(' ', '-')}-{version}" if name is None else name,
                num_partitions=partitions,
                replication_factor=replicas,
                assignments=[
                    CreatableReplicaAssignment(partition_index=number, broker_ids=brokers)
                    for number, brokers in (assignments or {}).items()
                ],
                configs=[
                    CreatableTopicConfig(name=each, value=value)
                    for each, value in (settings or {}).items()
                ],
            )
            return CreateTopicsRequest(
                topics=[topic], timeout_ms=9_000, validate_only=validate_only
            )

        # The last version has the id of the topic: Kafka makes one up even for a rehearsal.
        conversation.ask(f"create {label}", make, range(2, 7) if validate_only else None)

    one("plain", partitions=2, settings={"retention.ms": "1000000", "cleanup.policy": "compact"})
    one("validated", partitions=2, validate_only=True)
    one("defaults", partitions=-1, replicas=-1)
    one("no partitions", partitions=0)
    one("minus two", partitions=-2)
    one("no replicas", replicas=0)
    one("two replicas", replicas=2)
    one("too far", replicas=32767)
    one("name empty", name="")
    one("name dots", name="..")
    one("name bad", name="a b")
    one("name long", name="x" * 250)
    one("again", name="plain-7")
    one("colliding", name="plain_7.x")
    one("colliding too", name="plain.7_x")
    one("internal", name="__consumer_offsets", validate_only=True)
    one("manual", partitions=-1, replicas=-1, assignments={0: [1], 1: [1]})
    one("manual and count", partitions=2, replicas=-1, assignments={0: [1], 1: [1]})
    one("manual and replicas", partitions=-1, replicas=1, assignments={0: [1]})
    one("manual with a gap", partitions=-1, replicas=-1, assignments={0: [1], 2: [1]})
    one("manual from one", partitions=-1, replicas=-1, assignments={1: [1]})
    one("manual twice", partitions=-1, replicas=-1, assignments={0: [1, 1]})
    one("manual stranger", partitions=-1, replicas=-1, assignments={0: [7]})
    one("manual nobody", partitions=-1, replicas=-1, assignments={0: []})
    one("manual uneven", partitions=-1, replicas=-1, assignments={0: [1], 1: [1, 7]})
    one("bad setting", settings={"retention.ms": "soon"})
    one("unknown setting", settings={"no.such": "1"})
    one("null setting", settings={"retention.ms": None})
    one("broker setting", settings={"log.retention.ms": "5"})

    def twice(_: int) -> CreateTopicsRequest:
        topic = CreatableTopic(name="twice", num_partitions=1, replication_factor=1)
        return CreateTopicsRequest(topics=[topic, topic], timeout_ms=9_000)

    conversation.ask("create twice", twice)
    conversation.ask("create nothing", lambda _: CreateTopicsRequest(timeout_ms=9_000))


def delete_topics(conversation: Conversation) -> None:
    for version in range(1, 7):
        conversation.create(f"doomed-{version}")

    def by_name(*names: str) -> Callable[[int], DeleteTopicsRequest]:
        return lambda version: DeleteTopicsRequest(
            topic_names=[name.format(version) for name in names],
            topics=[DeleteTopicState(name=name.format(version)) for name in names],
            timeout_ms=9_000,
        )

    conversation.ask("delete", by_name("doomed-{}"))
    conversation.ask("delete again", by_name("doomed-{}"))
    conversation.ask("delete twice", by_name("stranger", "stranger"))
    conversation.ask("delete nothing", by_name())

    def by_id(*states: DeleteTopicState) -> Callable[[int], DeleteTopicsRequest]:
        return lambda _: DeleteTopicsRequest(topics=list(states), timeout_ms=9_000)

    only = range(6, 7)
    conversation.ask("an id", by_id(DeleteTopicState(name=None, topic_id=STRANGER)), only)
    conversation.ask("both", by_id(DeleteTopicState(name="stranger", topic_id=STRANGER)), only)
    conversation.ask("neither", by_id(DeleteTopicState(name=None)), only)


def create_partitions(conversation: Conversation) -> None:
    def grow(
        label: str,
        count: int,
        assignments: list[list[int]] | None = None,
        *,
        name: str | None = None,
        validate_only: bool = False,
    ) -> None:
        def make(version: int) -> CreatePartitionsRequest:
            topic = CreatePartitionsTopic(
                name=name or f"grows-{version}",
                count=count,
                assignments=None
                if assignments is None
                else [CreatePartitionsAssignment(broker_ids=each) for each in assignments],
            )
            return CreatePartitionsRequest(
                topics=[topic], timeout_ms=9_000, validate_only=validate_only
            )

        conversation.ask(f"grow {label}", make)

    for version in range(4):
        conversation.create(f"grows-{version}", 2)
    grow("validated", 4, validate_only=True)
    grow("by one", 3)
    grow("to the same", 3)
    grow("to fewer", 2)
    grow("to none", 0)
    grow("to less than none", -1)
    grow("a stranger", 3, name="stranger")
    grow("by hand", 5, [[1], [1]])
    grow("by hand, too few", 7, [[1]])
    grow("by hand, too many", 6, [[1], [1]])
    grow("by hand, a stranger", 6, [[7]])
    grow("by hand, nobody", 6, [[]])
    grow("by hand, twice", 6, [[1, 1]])

    def twice(version: int) -> CreatePartitionsRequest:
        topic = CreatePartitionsTopic(name=f"grows-{version}", count=9, assignments=None)
        return CreatePartitionsRequest(topics=[topic, topic], timeout_ms=9_000)

    conversation.ask("grow twice", twice)


def elections(conversation: Conversation) -> None:
    conversation.create("led", 2)

    def elect(label: str, kind: int, *named: TopicPartitions, everything: bool = False) -> None:
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None if everything else list(named),
            timeout_ms=9_000,
        )
        conversation.ask(f"elect {label} by {kind}", partial(_always, request))

    for kind in (0, 1, 7):
        led = TopicPartitions(topic="led", partitions=[0, 1, 9])
        elect("some", kind, led, TopicPartitions(topic="stranger", partitions=[0]))
        elect("twice", kind, TopicPartitions(topic="led", partitions=[0, 0]), led)
        elect("nothing", kind)
        elect("no partitions", kind, TopicPartitions(topic="led", partitions=[]))
        elect("everything", kind, everything=True)


def the_cluster(conversation: Conversation) -> None:
    for kind in (1, 2, 3):
        request = DescribeClusterRequest(endpoint_type=kind)
        conversation.ask(f"cluster {kind}", partial(_always, request))
    conversation.create("pages", 3)
    conversation.create("pages-more", 2)

    def pages(label: str, limit: int, cursor: Cursor | None, *names: str) -> None:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        conversation.ask(f"partitions {label}", lambda _: request)

    pages("of both", 2000, None, "pages", "pages-more")
    pages("in reverse", 2000, None, "pages-more", "pages")
    pages("two", 2, None, "pages", "pages-more")
    pages("three", 3, None, "pages", "pages-more")
    pages("none", 0, None, "pages")
    pages("from a cursor", 2, Cursor(topic_name="pages", partition_index=2), "pages", "pages-more")
    pages("from behind", 9, Cursor(topic_name="pages", partition_index=3), "pages", "pages-more")
    pages("from a stranger", 9, Cursor(topic_name="pagez", partition_index=0), "pages")
    pages("of strangers", 9, None, "stranger", "pages", "a b")

    for nobody in (7, -1):
        unregistered = UnregisterBrokerRequest(broker_id=nobody)
        conversation.ask(f"unregister {nobody}", partial(_always, unregistered))
    topics = [DescribableLogDirTopic(topic="pages", partitions=[0, 2])]
    conversation.ask("directories", lambda _: DescribeLogDirsRequest(topics=topics))
    strangers = [DescribableLogDirTopic(topic="stranger", partitions=[0])]
    conversation.ask("directories of strangers", lambda _: DescribeLogDirsRequest(topics=strangers))
    conversation.ask("directories of none", lambda _: DescribeLogDirsRequest(topics=[]))
    moved = [AlterReplicaLogDirTopic(name="pages", partitions=[0])]
    elsewhere = AlterReplicaLogDir(path="/no/such/directory", topics=moved)
    conversation.ask("move", lambda _: AlterReplicaLogDirsRequest(dirs=[elsewhere]))

    new_producer = InitProducerIdRequest(transactional_id=None)
    wait_until(
        lambda: conversation.connection.ask(new_producer, 4).error_code == 0, "ids can be had"
    )
    conversation.ask("producer", lambda _: new_producer)
    for kinds in ([], [TOPIC], [BROKER], [LOGGER], [16], [32], [99]):
        resources = ListConfigResourcesRequest(resource_types=kinds)
        conversation.ask(f"resources {kinds}", partial(_always, resources))


def _always(request: Message, _version: int) -> Message:
    return request
