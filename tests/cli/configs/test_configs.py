from collections.abc import Callable

import pytest

from tests.support.brokers.clusters import Cluster
from tests.support.command import Finished, run_command
from tests.support.waiting import eventually

Configs = Callable[..., Finished]


@pytest.fixture
def configs(cluster: Cluster) -> Configs:
    """`headwater configs` on the cluster."""

    def run(*arguments: object) -> Finished:
        return run_command("configs", *arguments, "--bootstrap-server", cluster.bootstrap)

    return run


@pytest.fixture
def topic(cluster: Cluster, configs: Configs) -> str:
    name = cluster.new_name()
    created = run_command(
        *("topics", "create", name, "-b", cluster.bootstrap),
        *("--config", "cleanup.policy=compact"),
    )
    assert created.exit_code == 0
    eventually(lambda: configs("describe", "--topic", name).exit_code == 0)
    return name


def values(finished: Finished) -> dict[str, str]:
    """Settings and values of the lines below the title."""
    assert finished.exit_code == 0, finished.stderr
    lines = [line.removeprefix("  ").split(" sensitive=")[0] for line in finished.lines[1:]]
    return dict(line.split("=", 1) for line in lines)


def test_a_topics_own_settings_and_all(topic: str, configs: Configs) -> None:
    own = configs("--describe", "--entity-type", "topics", "--entity-name", topic)
    assert own.lines == [
        f"Dynamic configs for topic {topic} are:",
        "  cleanup.policy=compact sensitive=false synonyms={"
        "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact, DEFAULT_CONFIG:log.cleanup.policy=delete}",
    ]
    assert configs("describe", "--topic", topic).stdout == own.stdout
    everything = configs("describe", "--topic", topic, "--all")
    assert everything.lines[0] == f"All configs for topic {topic} are:"
    assert values(everything)["segment.ms"] == "604800000"
    assert len(everything.lines) > 20
    assert values(configs("describe", "segment.ms", "--topic", topic)) == {
        "segment.ms": "604800000"
    }


def test_settings_are_added_and_deleted(topic: str, configs: Configs) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    altered = configs(
        *("--alter", *entity),
        *("--add-config", "retention.ms=77,cleanup.policy=[compact,delete]"),
    )
    assert (altered.exit_code, altered.stdout) == (
        0,
        f"Completed updating config for topic {topic}.\n",
    )
    both = {"cleanup.policy": "compact,delete", "retention.ms": "77"}
    eventually(lambda: values(configs("describe", "--topic", topic)) == both)
    swapped = configs(
        *("alter", "--topic", topic),
        *("--delete-config", "cleanup.policy,retention.ms", "--add-config", "segment.ms=99999"),
    )
    assert swapped.exit_code == 0
    eventually(lambda: values(configs("describe", "--topic", topic)) == {"segment.ms": "99999"})
    missing = configs("alter", "--topic", topic, "--delete-config", "retention.ms")
    assert (missing.exit_code, missing.stderr) == (
        1,
        f"headwater: Topic {topic!r} has no value of its own to delete for retention.ms.\n",
    )


def test_all_topics_at_once(topic: str, configs: Configs) -> None:
    described = configs("--describe", "--entity-type", "topics")
    assert f"Dynamic configs for topic {topic} are:" in described.lines


def test_brokers_and_their_default(cluster: Cluster, configs: Configs) -> None:
    one = ("--entity-type", "brokers", "--entity-name", cluster.broker_id)
    assert configs("--alter", *one, "--add-config", "log.cleaner.threads=1").lines == [
        f"Completed updating config for broker {cluster.broker_id}."
    ]
    default = ("--entity-type", "brokers", "--entity-default")
    assert configs("--alter", *default, "--add-config", "log.cleaner.threads=2").lines == [
        "Completed updating default config for brokers in the cluster."
    ]
    eventually(
        lambda: (
            values(configs("describe", "--broker", cluster.broker_id)).get("log.cleaner.threads")
            == "1"
        )
    )
    eventually(
        lambda: values(configs("describe", "--broker-defaults")).get("log.cleaner.threads") == "2"
    )
    described = configs("--describe", "--entity-type", "brokers").lines
    assert described[0] == f"Dynamic configs for broker {cluster.broker_id} are:"
    assert "Default configs for brokers in the cluster are:" in described
    assert len(configs("describe", "--broker", cluster.broker_id, "--all").lines) > 50
    for entity in (("--broker", cluster.broker_id), ("--broker-defaults",)):
        assert configs("alter", *entity, "--delete-config", "log.cleaner.threads").exit_code == 0


def test_loggers(cluster: Cluster, configs: Configs) -> None:
    entity = ("--entity-type", "broker-loggers", "--entity-name", cluster.broker_id)
    levels = values(configs("--describe", *entity))
    logger = sorted(name for name in levels if name != "root")[0]
    assert configs("--alter", *entity, "--add-config", f"{logger}=DEBUG").lines == [
        f"Completed updating config for broker-logger {cluster.broker_id}."
    ]
    eventually(
        lambda: values(configs("describe", "--broker-logger", cluster.broker_id))[logger] == "DEBUG"
    )
    configs("--alter", *entity, "--add-config", f"{logger}={levels[logger]}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("describe", "--topic", "absent"), "There is no topic 'absent'."),
        (("alter", "--topic", "absent", "--add-config", "retention.ms=1"), "There is no topic"),
        (("alter", "--topic", "absent", "--delete-config", "retention.ms"), "There is no topic"),
        (("describe", "--broker", "99"), "There is no broker 99 in the cluster."),
    ],
)
def test_a_failure_is_one_sentence(
    cluster: Cluster, arguments: tuple[str, ...], sentence: str
) -> None:
    failed = run_command(*("configs", *arguments, "-b", cluster.bootstrap))
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.startswith("headwater: ")
    assert failed.stderr.count("\n") == 1
    assert sentence in failed.stderr


def test_a_value_that_cannot_be_is_told_by_the_broker(topic: str, configs: Configs) -> None:
    failed = configs("alter", "--topic", topic, "--add-config", "retention.ms=soon")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "retention.ms" in failed.stderr
    assert "soon" in failed.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("alter", "--topic", "x"),
        ("alter", "--entity-type", "topics", "--add-config", "a=1"),
        ("alter", "--topic", "x", "--add-config", "a"),
        ("describe", "--entity-type", "users"),
        ("describe", "--broker", "one"),
        ("describe", "--topic", "x", "--broker", "1"),
        ("describe", "--entity-type", "broker-loggers"),
    ],
)
def test_a_senseless_command_line_exits_with_2(
    configs: Configs, arguments: tuple[str, ...]
) -> None:
    finished = configs(*arguments)
    assert (finished.exit_code, finished.stdout) == (2, "")


@pytest.mark.kafka
@pytest.mark.full
def test_the_lines_are_those_of_kafkas_own_tool(
    cluster: Cluster, topic: str, configs: Configs
) -> None:
    entity = ("--describe", "--entity-type", "topics", "--entity-name", topic)
    for more in ((), ("--all",)):
        theirs = cluster.run_tool("configs", *entity, *more)
        assert configs(*entity, *more).stdout == theirs


def test_settings_of_groups(cluster: Cluster, configs: Configs) -> None:
    group = cluster.new_name("group")
    by_flags = ("--entity-type", "groups", "--entity-name", group)
    setting = "consumer.session.timeout.ms"
    altered = configs("--alter", *by_flags, "--add-config", f"{setting}=50000")
    assert altered.lines == [f"Completed updating config for group {group}."]
    eventually(lambda: values(configs("--describe", *by_flags)) == {setting: "50000"})
    assert configs("describe", "--group", group).lines[0] == (
        f"Dynamic configs for group {group} are:"
    )
    everything = values(configs("describe", "--group", group, "--all"))
    assert everything["consumer.heartbeat.interval.ms"] == "5000"
    assert (
        f"Dynamic configs for group {group} are:"
        in configs("describe", "--entity-type", "groups").lines
    )
    refused = configs("alter", "--group", group, "--add-config", f"{setting}=1")
    assert refused.exit_code == 1
    assert setting in refused.stderr
    assert configs("alter", "--group", group, "--delete-config", setting).exit_code == 0
    eventually(lambda: values(configs("describe", "--group", group)) == {})


def test_settings_of_client_metrics(cluster: Cluster, configs: Configs) -> None:
    name = cluster.new_name("metrics")
    added = "interval.ms=1000,match=[client_id=a,client_source_port=1]"
    assert configs("alter", "--client-metrics", name, "--add-config", added).exit_code == 0
    expected = {"interval.ms": "1000", "match": "client_id=a,client_source_port=1"}
    entity = ("--entity-type", "client-metrics", "--entity-name", name)
    eventually(lambda: values(configs("--describe", *entity)) == expected)
    title = f"Dynamic configs for client-metric {name} are:"
    assert title in configs("describe", "--entity-type", "client-metrics").lines
    refused = configs("alter", "--client-metrics", name, "--add-config", "interval.ms=5")
    assert refused.exit_code == 1
