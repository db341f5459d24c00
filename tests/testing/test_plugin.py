import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

#: Where Headwater is installed, pytest finds the plugin by itself.
_LOAD = (
    [] if entry_points(group="pytest11", name="headwater") else ["-p", "headwater.testing.plugin"]
)


def run_tests(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess(*_LOAD, "-p", "no:cacheprovider", *arguments)


def test_one_broker_serves_the_session_and_a_fresh_one_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from confluent_kafka import Producer

        seen = {}

        def topics(broker):
            client = Producer({"bootstrap.servers": broker.bootstrap})
            return set(client.list_topics(timeout=30).topics)

        def test_first(headwater_broker, headwater_topic):
            seen.update(port=headwater_broker.port, topic=headwater_topic)
            assert headwater_topic in topics(headwater_broker)

        def test_second(headwater_broker, headwater_topic):
            assert headwater_broker.port == seen["port"]
            assert headwater_topic != seen["topic"]
            assert seen["topic"] not in headwater_broker.topics()

        def test_fresh(headwater_fresh_broker, headwater_broker):
            assert headwater_fresh_broker.port != headwater_broker.port
            assert headwater_fresh_broker.topics() == []
            seen["directory"] = headwater_fresh_broker.data_dir

        def test_afterwards(headwater_fresh_broker):
            assert not seen["directory"].exists()
            headwater_fresh_broker.create_topic("orders", partitions=2)
            headwater_fresh_broker.restart()
            assert headwater_fresh_broker.topics() == ["orders"]
        """
    )
    run_tests(pytester).assert_outcomes(passed=4)


def test_settings_are_overridden_by_a_fixture_of_the_same_name(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def headwater_settings():
            return {"broker.id": "7"}
        """
    )
    pytester.makepyfile(
        """
        from confluent_kafka import Producer

        def test_id(headwater_broker):
            client = Producer({"bootstrap.servers": headwater_broker.bootstrap})
            assert list(client.list_topics(timeout=30).brokers) == [7]
        """
    )
    run_tests(pytester).assert_outcomes(passed=1)


def test_fixtures_are_listed_with_what_they_are(pytester: pytest.Pytester) -> None:
    listed = run_tests(pytester, "--fixtures").stdout.str()
    for name in ("headwater_broker", "headwater_fresh_broker", "headwater_topic"):
        assert name in listed
    assert "Kafka-compatible broker" in listed


def test_whoever_does_not_use_it_loads_nothing_of_it() -> None:
    script = (
        "import sys, pytest\n"
        "import headwater.testing.plugin\n"
        "loaded = {name for name in sys.modules if name.partition('.')[0] == 'headwater'}\n"
        "allowed = {'headwater', 'headwater.testing', 'headwater.testing.plugin'}\n"
        "sys.exit(f'loaded {loaded - allowed}' if loaded - allowed else 0)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (finished.returncode, finished.stderr) == (0, "")
