import math
from collections.abc import Iterator

import pytest

from headwater.base.errors import KafkaError
from headwater.cli.app import main
from headwater.cli.metrics.page import Histogram, MetricsPage
from headwater.cli.metrics.source import MetricsAddress, parse_address
from headwater.testing import broker
from headwater.testing.running_broker import RunningBroker

PAGE = """\
# HELP headwater_x Something.
# TYPE headwater_x gauge
headwater_x 3.5
headwater_log_size_bytes{topic="a \\"b\\" \\\\ \\n",partition="0"} 5
headwater_log_size_bytes{topic="c",partition="0"} 7 1700000000000
headwater_log_size_bytes{topic="c",partition="1"} +Inf
broken line here
headwater_request_seconds_bucket{api="Fetch",le="0.1"} 50
headwater_request_seconds_bucket{api="Fetch",le="0.2"} 99
headwater_request_seconds_bucket{api="Fetch",le="+Inf"} 100
headwater_request_seconds_sum{api="Fetch"} 8
headwater_request_seconds_count{api="Fetch"} 100
"""


def test_a_page_is_read() -> None:
    page = MetricsPage(PAGE)
    assert page.value("headwater_x") == 3.5
    assert page.value("headwater_y") is None
    assert "headwater_x" in page and "broken" not in page
    assert page.by_label("headwater_log_size_bytes", "topic") == {'a "b" \\ \n': 5, "c": math.inf}


def test_quantiles_of_a_histogram_are_bounds() -> None:
    histogram = MetricsPage(PAGE).histograms("headwater_request_seconds", "api")["Fetch"]
    assert (histogram.quantile(0.5), histogram.quantile(0.51)) == (0.1, 0.2)
    assert histogram.quantile(1.0) == math.inf
    assert histogram.mean == 0.08
    recent = histogram.since(Histogram([(0.1, 50), (0.2, 50), (math.inf, 50)], 50, 3))
    assert (recent.count, recent.quantile(0.5), recent.mean) == (50, 0.2, 0.1)
    assert math.isnan(histogram.since(histogram).quantile(0.5))
    # A broker that was restarted counts from the start again.
    restarted = Histogram([(0.1, 3)], 3, 1)
    assert restarted.since(histogram) is restarted


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("host:9404", MetricsAddress("host", 9404)),
        ("http://host:9404/metrics", MetricsAddress("host", 9404)),
        ("[::1]:9404", MetricsAddress("::1", 9404)),
        (":9404", MetricsAddress("127.0.0.1", 9404)),
    ],
)
def test_addresses(text: str, address: MetricsAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["host", "host:", "host:port", "host:70000"])
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(KafkaError, match="not the address of metrics"):
        parse_address(text)


@pytest.fixture(scope="module")
def measured() -> Iterator[RunningBroker]:
    with broker(settings={"metrics.listen": "127.0.0.1:0", "broker.id": "4"}) as running:
        running.create_topic("orders", partitions=2)
        yield running


def metrics_address(running: RunningBroker) -> str:
    address = running.metrics_address
    assert address is not None
    return address


def test_tables_for_people(measured: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    address = metrics_address(measured)
    assert main(["metrics", "--metrics-address", address, "--interval", "0.01"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert f"Broker 4 at {address}" in shown.out
    for word in (
        "BytesIn",
        "BytesOut",
        "NetworkProcessorAvgIdlePercent",
        "RequestHandlerAvgIdlePercent",
        "UnderReplicatedPartitions",
        "ActiveControllerCount",
        "orders",
        "/s",
    ):
        assert word in shown.out
    assert main(["metrics", "--metrics-address", address, "--interval", "0"]) == 0
    assert "/s " not in capsys.readouterr().out


def test_the_page_itself(measured: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "--metrics-address", metrics_address(measured), "--raw"]) == 0
    assert "# TYPE headwater_bytes_in_total counter\n" in capsys.readouterr().out


def test_a_broker_tells_where_its_metrics_are(capsys: pytest.CaptureFixture[str]) -> None:
    with broker() as quiet:
        assert main(["metrics", "--bootstrap-server", quiet.bootstrap]) == 1
        assert "No metrics are served by broker 0" in capsys.readouterr().err
        port = quiet.port  # It is free in a moment, and stays so for the next broker.
    with broker(settings={"metrics.listen": f"0.0.0.0:{port}"}) as telling:
        assert main(["metrics", "-b", telling.bootstrap, "--raw"]) == 0
        assert "headwater_build_info" in capsys.readouterr().out


def test_a_free_port_cannot_be_told(
    measured: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metrics", "-b", measured.bootstrap]) == 1
    assert "--metrics-address" in capsys.readouterr().err


def test_where_there_are_none_is_told_in_a_sentence(
    measured: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["metrics", "--metrics-address", "127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "No metrics come from 127.0.0.1:1" in error
    # A broker's own port speaks another protocol.
    assert main(["metrics", "--metrics-address", measured.bootstrap]) == 1
    assert "No metrics come from" in capsys.readouterr().err
