"""What a broker is told at its start: a file, assignments, and everything that is wrong in them."""

import pytest

from headwater.base.setting import SettingFaults
from headwater.base.settings import SettingError, SettingValues
from headwater.broker.settings.configuration import Configuration
from headwater.broker.settings.listener_settings import advertised_endpoints, client_endpoints
from headwater.net.endpoint import Endpoint
from tests.support.kafka.stock_settings import STOCK_BROKER, STOCK_SERVER


def read(
    text: str = "", assignments: tuple[str, ...] = (), file: str = "server.properties"
) -> SettingValues:
    configuration = Configuration()
    configuration.read_file(text, file)
    configuration.read_assignments(assignments)
    assert configuration.warnings == []
    return configuration.settle()


def faults_of(configuration: Configuration) -> tuple[str, ...]:
    with pytest.raises(SettingError) as raised:
        configuration.settle()
    return raised.value.sentences


def test_the_file_that_comes_with_kafka_is_taken_as_it_is() -> None:
    values = read(STOCK_SERVER)
    assert client_endpoints(values) == [Endpoint("PLAINTEXT", "", 9092)]
    assert advertised_endpoints(values) == {"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092)}
    assert values.texts("log.dirs") == ("/tmp/kraft-combined-logs",)
    assert values.sources["node.id"] == "server.properties"


def test_so_is_the_one_for_a_node_that_is_a_broker_only() -> None:
    values = read(STOCK_BROKER)
    assert client_endpoints(values) == [Endpoint("PLAINTEXT", "localhost", 9092)]


def test_assignments_win_over_the_file_and_the_last_one_counts() -> None:
    values = read("num.partitions=3\n", ("num.partitions=4", "num.partitions = 5"))
    assert values.integer("num.partitions") == 5
    assert values.sources["num.partitions"] == "--set"


def test_a_value_may_hold_an_equals_sign() -> None:
    assert read(assignments=("broker.rack=b=c",)).optional_text("broker.rack") == "b=c"


@pytest.mark.parametrize("assignment", ["num.partitions", "=3", ""])
def test_an_assignment_without_name_or_value_is_refused(assignment: str) -> None:
    with pytest.raises(SettingError, match="must be name=value"):
        read(assignments=(assignment,))


def test_all_names_that_nobody_knows_are_told_in_one_line_and_left_out() -> None:
    configuration = Configuration()
    configuration.read_file("no.such.thing=1\n\nnum.partition=2\nbroker.id=3\n", "a file")
    assert configuration.settle().integer("broker.id") == 3
    [warning] = configuration.warnings
    assert warning.startswith("a file has 2 settings that Headwater does not know and leaves out: ")
    assert "no.such.thing (line 1), num.partition (line 3; did you mean num.partitions" in warning
    assert "\n" not in warning


def test_on_the_command_line_a_name_that_nobody_knows_is_a_mistake() -> None:
    with pytest.raises(SettingError, match=r"'num\.partition' in --set; did you mean"):
        read(assignments=("num.partition=2",))


def test_everything_that_is_wrong_is_told_at_once() -> None:
    configuration = Configuration()
    configuration.read_file(
        "num.partitions=0\n=5\nlog.dirs=/a,/a\nlisteners=SSL://:1\nzookeeper.connect=zoo:port\n",
        "a file",
    )
    configuration.read_assignments(["nonsense", "log.cleaner.threads=many"])
    expected = [
        "Line 2 of a file has a value without a name",
        "num.partitions in line 1 of a file cannot be '0'",
        "'nonsense' sets nothing",
        "log.cleaner.threads in --set cannot be 'many'",
        "log.dirs names '/a' twice",
        "speak SSL",
        "'zoo:port' is not HOST:PORT",
    ]
    sentences = faults_of(configuration)
    assert len(sentences) == len(expected)
    for sentence, words in zip(sentences, expected, strict=True):
        assert words in sentence and sentence.endswith(".")


def test_one_fault_is_a_plain_error_with_its_sentence() -> None:
    configuration = Configuration()
    configuration.read_file("num.partitions=0\n", "a file")
    with pytest.raises(SettingError) as raised:
        configuration.settle()
    assert not isinstance(raised.value, SettingFaults)
    assert raised.value.sentences == (str(raised.value),)


def test_what_cannot_be_read_is_not_told_as_missing_too() -> None:
    configuration = Configuration()
    configuration.read_file("broker.id=one\nbroker.id.generation.enable=false\n", "a file")
    [sentence] = faults_of(configuration)
    assert "broker.id in line 1 of a file cannot be 'one'" in sentence


def test_of_a_name_that_comes_twice_only_the_last_value_must_be_right() -> None:
    assert read("num.partitions=none\nnum.partitions=3\n").integer("num.partitions") == 3
