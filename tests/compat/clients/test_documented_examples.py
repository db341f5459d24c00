"""The examples in docs/clients.md and the table in docs/apis.md are true."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.testing.apache_kafka import TOOLS
from headwater.wire.api_keys import ApiKey
from headwater.wire.messages.api_versions import ApiVersionsRequest
from tests.support.other_clients.brokers import ADDRESS, HEADWATER, BrokerUnderTest, running_broker
from tests.support.other_clients.contract import TIMEOUT_S, require_package
from tests.support.other_clients.raw import RawConnection
from tests.support.requirements import require_tool

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "clients.md").read_text()
APIS = (DOCS / "apis.md").read_text()
DOCUMENTED_ADDRESS = "localhost:9092"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def fresh_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    """The examples give topics names that anybody might give them."""
    if broker_kind == ADDRESS:
        pytest.skip("these tests need a broker without topics")
    with running_broker(broker_kind, tmp_path_factory.mktemp("fresh")) as running:
        yield running


@pytest.mark.parametrize("package", ["confluent_kafka", "kafka", "aiokafka"])
def test_python(package: str, fresh_broker: BrokerUnderTest) -> None:
    require_package(package, package)
    [example] = [each for each in examples("python") if f"from {package} import" in each]
    example = example.replace(DOCUMENTED_ADDRESS, fresh_broker.bootstrap)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    # Each ends with printing what it wrote.
    assert re.search(r"b'(paid|settled|sent)'", done.stdout)


def test_kcat(fresh_broker: BrokerUnderTest) -> None:
    require_tool("kcat")
    [example] = examples("sh")
    printed = []
    for line in example.replace(DOCUMENTED_ADDRESS, fresh_broker.bootstrap).splitlines():
        done = subprocess.run(
            line, shell=True, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        printed.append(done.stdout)
    assert printed[2].splitlines() == ["hello", "value"]
    assert '"key":"key","payload":"value"' in printed[3]
    assert 'topic "greetings" with 1 partitions' in printed[4]
    assert printed[5].strip() == "greetings [0] offset 2"


def test_the_tools_exist() -> None:
    """Whether they work is what `test_java_tools` shows."""
    [example] = examples("console")
    named = [shlex.split(line)[1] for line in example.splitlines()]
    assert len(named) >= 12
    assert {each.removeprefix("kafka-").removesuffix(".sh") for each in named} <= TOOLS.keys()


def test_the_table_of_apis(broker: BrokerUnderTest) -> None:
    if broker.kind != HEADWATER:
        pytest.skip("the table is Headwater's")
    documented = set(re.findall(r"^\| (\w+) \| (\d+) \| (\d+(?: to \d+)?) \|$", APIS, re.MULTILINE))
    with RawConnection(broker.bootstrap) as connection:
        offered = connection.ask(ApiVersionsRequest(), 0).api_keys
    # This broker has nowhere to show what clients push, so it does not ask for it.
    unasked = {("GetTelemetrySubscriptions", "71", "0"), ("PushTelemetry", "72", "0")}
    assert documented - unasked == {
        (
            ApiKey(each.api_key).name.title().replace("_", ""),
            str(each.api_key),
            str(each.min_version)
            if each.min_version == each.max_version
            else f"{each.min_version} to {each.max_version}",
        )
        for each in offered
    }
