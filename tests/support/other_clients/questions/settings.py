"""Questions about settings, described and altered: see `questions`."""

from __future__ import annotations

import re

from headwater.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from headwater.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headwater.wire.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from headwater.wire.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from headwater.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from headwater.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.other_clients.questions.questions import Conversation

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def topic_settings(conversation: Conversation) -> None:
    conversation.create("set", retention_ms="5000000", compression_type="zstd")

    def describe(
        label: str, kind: int, name: str, keys: list[str] | None, *, synonyms: bool = False
    ) -> None:
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=keys
        )
        conversation.ask(
            f"describe {label}",
            lambda _: DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms),
        )

    some = ["retention.ms", "compression.type", "segment.bytes", "cleanup.policy", "no.such"]
    describe("some", TOPIC, "set", some)
    describe("synonyms", TOPIC, "set", some, synonyms=True)
    describe("everything", TOPIC, "set", None, synonyms=True)
    describe("nothing", TOPIC, "set", [])
    describe("a stranger", TOPIC, "stranger", None)
    describe("a bad name", TOPIC, "a b", None)
    describe("no name", TOPIC, "", None)
    of_broker = ["message.max.bytes", "log.retention.ms", "log.retention.hours", "num.partitions"]
    describe("a broker", BROKER, "1", of_broker, synonyms=True)
    describe("all brokers", BROKER, "", of_broker, synonyms=True)
    describe("another broker", BROKER, "7", of_broker)
    describe("no broker", BROKER, "x", of_broker)
    describe("no such kind", 77, "x", None)


def altered_settings(conversation: Conversation) -> None:
    conversation.create("alter")

    def incremental(
        label: str, kind: int, name: str, *changes: tuple[str, int, str | None], dry: bool = False
    ) -> None:
        configs = [
            IncrementalConfig(name=each, config_operation=operation, value=value)
            for each, operation, value in changes
        ]
        resource = IncrementalResource(resource_type=kind, resource_name=name, configs=configs)
        conversation.ask(
            f"incremental {label}",
            lambda _: IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry),
        )

    def whole(
        label: str, kind: int, name: str, settings: dict[str, str | None], *, dry: bool = False
    ) -> None:
        configs = [AlterableConfig(name=each, value=value) for each, value in settings.items()]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        conversation.ask(
            f"whole {label}",
            lambda _: AlterConfigsRequest(resources=[resource], validate_only=dry),
        )

    def described(label: str) -> None:
        # Kafka's broker follows its controller: when it serves a new topic it has all before too.
        conversation.create("-".join(["after", *re.findall("[a-z]+", label)]))
        names = ["retention.ms", "cleanup.policy", "segment.ms", "max.message.bytes"]
        resource = DescribeConfigsResource(
            resource_type=TOPIC, resource_name="alter", configuration_keys=names
        )
        conversation.ask(
            f"then {label}", lambda _: DescribeConfigsRequest(resources=[resource]), range(4, 5)
        )

    incremental("set", TOPIC, "alter", ("retention.ms", SET, "77777"))
    incremental("append", TOPIC, "alter", ("cleanup.policy", APPEND, "compact"))
    described("appended")
    incremental("append again", TOPIC, "alter", ("cleanup.policy", APPEND, "compact"))
    described("appended again")
    incremental("subtract", TOPIC, "alter", ("cleanup.policy", SUBTRACT, "delete"))
    described("subtracted")
    incremental("append to a number", TOPIC, "alter", ("retention.ms", APPEND, "1"))
    incremental("delete", TOPIC, "alter", ("retention.ms", DELETE, None))
    incremental("delete what is not set", TOPIC, "alter", ("segment.ms", DELETE, None))
    incremental("delete what is unknown", TOPIC, "alter", ("no.such", DELETE, None))
    incremental("null", TOPIC, "alter", ("retention.ms", SET, None))
    incremental("bad", TOPIC, "alter", ("retention.ms", SET, "x"))
    incremental("unknown", TOPIC, "alter", ("no.such", SET, "x"))
    incremental("twice", TOPIC, "alter", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    incremental("nothing", TOPIC, "alter")
    incremental("dry", TOPIC, "alter", ("segment.ms", SET, "12345"), dry=True)
    incremental("stranger", TOPIC, "stranger", ("retention.ms", SET, "1"))
    incremental("bad name", TOPIC, "a b", ("retention.ms", SET, "1"))
    described("in the end")
    whole("two", TOPIC, "alter", {"retention.ms": "5", "segment.ms": "6"})
    described("after two")
    whole("one", TOPIC, "alter", {"segment.ms": "7"})
    described("after one")
    whole("bad", TOPIC, "alter", {"segment.ms": "x"})
    whole("null", TOPIC, "alter", {"segment.ms": None})
    whole("unknown", TOPIC, "alter", {"no.such": "x"})
    whole("dry", TOPIC, "alter", {"retention.ms": "9"}, dry=True)
    whole("stranger", TOPIC, "stranger", {"segment.ms": "7"})
    described("after all")
    incremental("broker", BROKER, "1", ("log.retention.ms", SET, "999999999"))
    described("with the broker's")
    incremental("broker back", BROKER, "1", ("log.retention.ms", DELETE, None))
    incremental("all brokers", BROKER, "", ("log.retention.ms", SET, "888888888"))
    described("with all brokers'")
    incremental("all brokers back", BROKER, "", ("log.retention.ms", DELETE, None))
    incremental("fixed", BROKER, "1", ("broker.id", SET, "9"))
    incremental("fixed for all", BROKER, "", ("broker.id", SET, "9"))
    incremental("bad for a broker", BROKER, "1", ("message.max.bytes", SET, "x"))
    incremental("bad for all", BROKER, "", ("message.max.bytes", SET, "x"))
    incremental("another broker", BROKER, "7", ("message.max.bytes", SET, "5000"))
    incremental("no broker", BROKER, "x", ("message.max.bytes", SET, "5000"))
    incremental("no such kind", 77, "x", ("message.max.bytes", SET, "5000"))
    described("with nobody's")

    def same_twice(_: int) -> IncrementalAlterConfigsRequest:
        changes = [IncrementalConfig(name="retention.ms", config_operation=SET, value="1")]
        resource = IncrementalResource(resource_type=TOPIC, resource_name="alter", configs=changes)
        return IncrementalAlterConfigsRequest(resources=[resource, resource])

    conversation.ask("incremental the same twice", same_twice)


def named_settings(conversation: Conversation) -> None:
    """Of groups, and of subscriptions to clients' metrics."""
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

    def alter(
        label: str, kind: int, name: str, *changes: tuple[str, int, str | None], dry: bool = False
    ) -> None:
        configs = [
            IncrementalConfig(name=each, config_operation=operation, value=value)
            for each, operation, value in changes
        ]
        resource = IncrementalResource(resource_type=kind, resource_name=name, configs=configs)
        conversation.ask(
            f"alter {label}",
            lambda _: IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry),
        )

    def look(label: str, kind: int, name: str, *names: str) -> None:
        # When Kafka's broker serves a new topic it has all before too.
        conversation.create("-".join(["behind", *re.findall("[a-z]+", label)]))
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(names) or None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        conversation.ask(f"look {label}", lambda _: request)
        listing = ListConfigResourcesRequest(resource_types=[kind])
        conversation.ask(f"list {label}", lambda _: listing)

    of_group = (session, heartbeat, "no.such")
    look("at a group before", GROUP, "readers", *of_group)
    look("at no group", GROUP, "", *of_group)
    alter("a group", GROUP, "readers", (session, SET, "50000"))
    alter("a group with spaces", GROUP, "a b/c", (heartbeat, SET, "6000"))
    alter("a group dry", GROUP, "dry", (heartbeat, SET, "6000"), dry=True)
    look("at a group", GROUP, "readers", *of_group)
    look("at the other", GROUP, "a b/c", *of_group)
    for value in ("44999", "60001", "0", "-1", "x", "", "1.5", "99999999999"):
        alter(f"a session to {value}", GROUP, "readers", (session, SET, value))
    for value in ("4999", "15001", "x"):
        alter(f"heartbeats to {value}", GROUP, "readers", (heartbeat, SET, value))
    alter("an unknown one", GROUP, "readers", ("no.such", SET, "1"))
    alter("an unknown one away", GROUP, "readers", ("no.such", DELETE, None))
    alter("a number by more", GROUP, "readers", (session, APPEND, "1"))
    alter("to null", GROUP, "readers", (session, SET, None))
    alter("no group", GROUP, "", (session, SET, "50000"))
    alter("twice", GROUP, "readers", (session, SET, "50000"), (session, SET, "50001"))
    look("at the same group", GROUP, "readers", *of_group)

    of_metrics = ("interval.ms", "match", "metrics", "no.such")
    look("at metrics before", CLIENT_METRICS, "m")
    look("at no metrics", CLIENT_METRICS, "")
    some = ("metrics", SET, "org.apache.kafka.,x"), ("interval.ms", SET, "1000")
    alter("metrics", CLIENT_METRICS, "m", *some, ("match", SET, " client_id = a.* , client_id=b"))
    look("at metrics", CLIENT_METRICS, "m", *of_metrics)
    for value in ("99", "100", "3600000", "3600001", "-1", "x", ""):
        alter(f"an interval to {value}", CLIENT_METRICS, "m", ("interval.ms", SET, value))
    for value in ("nope=a", "client_id", "client_id=", "client_id=a=b", "client_id=[a", "", ","):
        alter(f"clients to {value}", CLIENT_METRICS, "m", ("match", SET, value))
    alter("unknown metrics", CLIENT_METRICS, "m", ("no.such", SET, "1"))
    alter("unknown metrics away", CLIENT_METRICS, "m", ("no.such", DELETE, None))
    alter("metrics to null", CLIENT_METRICS, "m", ("interval.ms", SET, None))
    alter("no metrics", CLIENT_METRICS, "", ("interval.ms", SET, "1000"))
    look("at other metrics", CLIENT_METRICS, "m", *of_metrics)
    alter("all away", CLIENT_METRICS, "m", *((name, DELETE, None) for name in of_metrics[:3]))
    look("at metrics behind", CLIENT_METRICS, "m")
