"""Which client changed what: a line in the log for each request, where the client asked."""

import logging
from pathlib import Path

import pytest

from headwater.base.errors import ErrorCode
from headwater.broker.requests.change_log import deed, unfinished
from headwater.broker.settings.config_changes import ConfigOperation
from headwater.broker.topics.config_alteration import ResourceChange, told_change
from headwater.net.peer_channel import PeerChannel
from headwater.wire.messages.alter_configs import AlterableConfig as ReplacedConfig
from headwater.wire.messages.alter_configs import AlterConfigsRequest
from headwater.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from headwater.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headwater.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headwater.wire.messages.delete_groups import DeleteGroupsRequest
from headwater.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headwater.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headwater.wire.messages.find_coordinator import FindCoordinatorRequest
from headwater.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headwater.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headwater.wire.schema import Message
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.brokers.running_broker import RunningBroker, run_broker_scenario

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2
_QUICK = {"offsets.topic.num.partitions": "2"}


def creation(*names: str, validate_only: bool = False, timeout_ms: int = 10_000) -> Message:
    topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)


def alteration(kind: int, name: str, *operations: tuple[str, int, str | None]) -> Message:
    configs = [
        AlterableConfig(name=each, config_operation=operation, value=value)
        for each, operation, value in operations
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource])


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What clients are said to have done since somebody asked."""
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("headwater.broker.")
        and record.getMessage().startswith(("Client ", "The topic "))
    ]
    caplog.clear()
    return lines


def test_topics(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(broker: RunningBroker) -> None:
        host, port = broker.server.addresses[0].split(":")
        channel = await PeerChannel.connect(host, int(port), client_id="ops\n\x1b[31m")
        sockname = channel.transport.get_extra_info("sockname")
        who = f"Client 'ops\\n\\x1b[31m' at {sockname[0]}:{sockname[1]}"

        async def lines_of(request: Message, version: int | None = None) -> list[str]:
            caplog.clear()
            await channel.send(request, version=version, timeout_s=30)
            return told(caplog)

        assert await lines_of(creation("a")) == [
            f"{who} created the topic a (partitions: 2, replicas: 1)."
        ]
        # A request is one line, whatever it asks for; what is refused is none of it.
        [line] = await lines_of(creation("a", *(f"t{number:02}" for number in range(30))))
        assert line.startswith(f"{who} created the topics t00 (partitions: 2, replicas: 1), t01 (")
        assert line.endswith(" and 20 more.") and len(line) < 600
        assert await lines_of(creation("a")) == []
        assert await lines_of(creation("b", validate_only=True)) == []
        growth = CreatePartitionsTopic(name="a", count=3, assignments=None)
        request = CreatePartitionsRequest(topics=[growth], timeout_ms=10_000)
        assert await lines_of(request) == [
            f"{who} added partitions to the topic a (partitions: 3)."
        ]
        records = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="a", partitions=[DeleteRecordsPartition(partition_index=1, offset=0)]
                )
            ],
            timeout_ms=10_000,
        )
        assert await lines_of(records) == [
            f"{who} deleted records of the partition a-1 (before 0)."
        ]
        topic_id = broker.server.context.image.topics["t00"].topic_id
        doomed = DeleteTopicsRequest(
            topics=[DeleteTopicState(name="a"), DeleteTopicState(name=None, topic_id=topic_id)],
            timeout_ms=10_000,
        )
        assert await lines_of(doomed) == [f"{who} deleted the topics a, t00."]
        wanted = MetadataRequest(
            topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True
        )
        assert await lines_of(wanted) == [f"{who} asked for, and so created, the topic new."]
        assert await lines_of(wanted) == []
        await channel.close()

    run_broker_scenario(tmp_path, scenario)


def test_settings_and_log_levels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(broker: RunningBroker) -> None:
        await broker.create_topic("a")

        async def deeds_of(request: Message) -> list[str]:
            caplog.clear()
            await broker.send(request)
            return [line.partition(" changed ")[2] or line for line in told(caplog)]

        change = (("retention.ms", SET, "3600000"), ("cleanup.policy", APPEND, "compact"))
        assert await deeds_of(alteration(TOPIC, "a", *change)) == [
            "settings of topic a: retention.ms=3600000, cleanup.policy+=compact."
        ]
        assert await deeds_of(alteration(TOPIC, "a", ("retention.ms", DELETE, None))) == [
            "settings of topic a: retention.ms removed."
        ]
        assert await deeds_of(alteration(TOPIC, "a", ("retention.ms", SET, "soon"))) == []
        assert await deeds_of(alteration(BROKER, "", ("num.io.threads", SET, "9"))) == [
            "settings of all brokers: num.io.threads=9."
        ]
        assert await deeds_of(alteration(BROKER, "0", ("log.cleaner.threads", SET, "2"))) == [
            "settings of broker 0: log.cleaner.threads=2."
        ]
        name = "headwater.broker.server"
        assert await deeds_of(alteration(LOGGER, "0", (name, SET, "WARN"))) == [
            f"log levels of broker 0: {name}=WARN."
        ]
        await broker.send(alteration(LOGGER, "0", (name, DELETE, None)))
        configs = [ReplacedConfig(name="retention.ms", value="1")]
        replaced = ReplacedResource(resource_type=TOPIC, resource_name="a", configs=configs)
        [line] = await deeds_of(AlterConfigsRequest(resources=[replaced]))
        assert line.endswith(" replaced all settings of topic a: retention.ms=1.")

    run_broker_scenario(tmp_path, scenario)


def test_secrets_and_long_values_stay_out_of_the_log() -> None:
    secrets = [
        ConfigOperation(name, SET, "s3cret")
        for name in ("zookeeper.digest.password", "listener.name.x.unknown")
    ]
    change = ResourceChange(BROKER, "0", [*secrets, ConfigOperation("broker.rack", SET, "r" * 999)])
    told_of_it = told_change(change)
    assert "s3cret" not in told_of_it and told_of_it.count("=[hidden]") == 2
    assert "r" * 100 + "..." in told_of_it and len(told_of_it) < 300


def test_the_topics_of_coordinators_and_groups(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(broker: RunningBroker) -> None:
        await broker.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        assert told(caplog) == [
            "The topic __consumer_offsets is created (partitions: 2, replicas: 1): a client asked "
            "for a coordinator."
        ]
        await broker.send(DeleteGroupsRequest(groups_names=["absent"]))
        assert told(caplog) == []

    run_broker_scenario(tmp_path, scenario, _QUICK)


def test_the_broker_that_was_asked_tells_it_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(cluster: BrokerCluster) -> None:
        asked = cluster.others(cluster.controller_id)[0]
        await cluster.send(asked, creation("forwarded"))
        [line] = told(caplog)
        assert line.endswith(" created the topic forwarded (partitions: 2, replicas: 1).")
        await cluster.send(asked, alteration(TOPIC, "forwarded", ("retention.ms", SET, "1")))
        [line] = told(caplog)
        assert line.endswith(" changed settings of topic forwarded: retention.ms=1.")

    run_cluster_scenario(tmp_path, scenario)


def test_what_took_too_long_may_be_done_yet() -> None:
    late, refused = ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS
    outcomes = [("a", late), ("b", refused), ("c", late), ("d", ErrorCode.NONE)]
    assert unfinished("creation of topic", outcomes) == (
        "went away before this was done: the creation of topics a, c"
    )
    assert unfinished("creation of topic", outcomes[1:2]) == ""
    assert deed("deleted", "topic", []) == ""
