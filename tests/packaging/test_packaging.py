"""What operators are given as files: a unit, an image, a compose file, alarms, a dashboard.

They are read here as those who use them read them. Every metric and label that alarms and panels
name must be on the page of a broker that runs.
"""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from headwater import Consumer, Producer
from headwater.base.errors import ErrorCode
from headwater.broker.metrics.health import HEALTH, READY
from headwater.broker.metrics.load_meter import LoadMeter
from headwater.broker.metrics.report import MetricsReport
from headwater.cli.serve.settings import serve_settings
from headwater.net.limits import ConnectionLimits
from headwater.wire.api_keys import ApiKey
from tests.support.brokers.broker_cluster import BrokerCluster, run_cluster_scenario
from tests.support.requirements import require_tool, skip_or_fail

ROOT = Path(__file__).parents[2]
FILES = ROOT / "packaging"
#: What PromQL itself means by these, and what Prometheus adds to whatever it reads.
_WORDS = frozenset(
    {
        *("abs", "and", "by", "deriv", "histogram_quantile", "increase", "max", "or"),
        *("rate", "sum", "timestamp", "topk", "up"),
    }
)
_ADDED_LABELS = frozenset({"instance", "job", "le"})


class Page(NamedTuple):
    """The metrics of a broker, and the labels of each."""

    labels: dict[str, set[str]]

    def check(self, expression: str) -> None:
        """Every metric is there, and has the labels that it is asked for by."""
        plain = re.sub(r'"[^"]*"', "", expression)
        grouped = {
            label.strip()
            for group in re.findall(r"by \(([^)]*)\)", plain)
            for label in group.split(",")
        }
        matched = set(
            re.findall(r"(\w+)\s*(?:=~|!=|!~|=)(?!=)", "".join(re.findall(r"{[^}]*}", plain)))
        )
        bare = re.sub(r"\[[^\]]*\]|{[^}]*}|by \([^)]*\)", " ", plain)
        names = set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", bare)) - _WORDS
        assert names <= self.labels.keys(), f"{expression}: {names - self.labels.keys()}"
        known = _ADDED_LABELS.union(*(self.labels[name] for name in names))
        assert grouped | matched <= known, f"{expression}: {(grouped | matched) - known}"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Of all brokers of a cluster in which something has happened."""
    labels: dict[str, set[str]] = {}

    def use(bootstrap: str) -> None:
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.send("orders", b"value").result(30)
        with Consumer(
            bootstrap_servers=bootstrap, group_id="readers", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["orders"])
            while not consumer.poll(1.0):
                pass
            consumer.commit()

    async def scenario(cluster: BrokerCluster) -> None:
        await cluster.create_topic("orders", [[1]], {"delay.mode": "header"})
        given_up = {"delay.mode": "retry", "retry.dead.letter.topic": "dlq.readers"}
        await cluster.create_topic("retry.readers", [[1]], given_up)
        await asyncio.to_thread(use, cluster.bootstrap)
        while not all(delays.known_state for _, delays in cluster.context(1).delays):
            await asyncio.sleep(0.01)
        cluster.context(1).metrics.record_error(ApiKey.FETCH, ErrorCode.OFFSET_OUT_OF_RANGE)
        for broker_id in cluster.servers:
            report = MetricsReport(cluster.context(broker_id), ConnectionLimits(), LoadMeter(None))
            for family in text_string_to_metric_families("".join(report.pieces())):
                name = f"{family.name}_total" if family.type == "counter" else family.name
                labels.setdefault(name, set())
                for sample in family.samples:
                    labels.setdefault(sample.name, set()).update(sample.labels)

    run_cluster_scenario(tmp_path_factory.mktemp("cluster"), scenario)
    return Page(labels)


def _alarms() -> Iterator[dict[str, Any]]:
    document = yaml.safe_load((FILES / "alerts.yaml").read_text())
    for group in document["groups"]:
        yield from group["rules"]


def test_alarms_are_about_what_brokers_show(page: Page) -> None:
    names = []
    for alarm in _alarms():
        page.check(alarm["expr"])
        assert alarm["labels"]["severity"] in ("critical", "warning")
        assert alarm["annotations"]["summary"].endswith(".")
        names.append(alarm["alert"])
    assert len(set(names)) == len(names)


def test_prometheus_takes_the_alarms() -> None:
    promtool = require_tool("promtool")
    done = _run(promtool, "check", "rules", str(FILES / "alerts.yaml"))
    assert f"{len(list(_alarms()))} rules found" in done.stdout


def test_every_alarm_has_its_section_in_the_guide() -> None:
    text = (ROOT / "docs" / "alarms.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    told = {section.split("\n", 1)[0]: section for section in sections}
    assert sorted(told) == sorted(alarm["alert"] for alarm in _alarms())
    for name, section in told.items():
        for part in ("**Means.**", "**Look.**", "**Do.**"):
            assert part in section, f"{name} lacks {part}"


def test_the_dashboard_shows_what_brokers_show(page: Page) -> None:
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken, f"{panel['title']} covers another panel"
        assert all(x < 24 for x, _ in cells)
        taken |= cells
        for target in panel.get("targets", ()):
            page.check(target["expr"])
            legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            page.check(f"sum by ({', '.join(legend or {'job'})}) ({target['expr']})")
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((\w+)(?:{.*})?, \w+\)", variable["query"])
            assert asked is not None
            assert asked[1] in page.labels


def test_the_unit_starts_a_broker_as_nobody_in_particular(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(FILES / "headwater.service")
    service = unit["Service"]
    assert (service["User"], service["Group"]) == ("headwater", "headwater")
    program, command, *options = shlex.split(service["ExecStart"])
    assert (program, command) == ("/opt/headwater/bin/headwater", "serve")
    help_text = (ROOT / "src/headwater/cli/serve/command.py").read_text()
    assert all(f'"{each}"' in help_text for each in options if each.startswith("--"))
    assert options[options.index("--data-dir") + 1] == f"/var/lib/{service['StateDirectory']}"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        copy = tmp_path / "headwater.service"
        text = (FILES / "headwater.service").read_text()
        copy.write_text(text.replace("/opt/headwater/bin/headwater", sys.executable))
        done = subprocess.run(
            [analyze, "verify", copy], capture_output=True, text=True, check=False
        )
        complaints = [line for line in done.stderr.splitlines() if "headwater.service" in line]
        assert complaints == []


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    """A checker that finds nothing to complain about."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def _instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (FILES / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def _image_variables() -> dict[str, str]:
    return {
        name: value
        for instruction, rest in _instructions()
        if instruction == "ENV"
        for name, _, value in (pair.partition("=") for pair in rest.split())
    }


def test_the_image_runs_without_rights_and_can_be_watched() -> None:
    instructions = _instructions()
    names = [name for name, _ in instructions]
    told = dict(instructions)
    assert names.index("USER") < names.index("ENTRYPOINT")
    # A number, so that Kubernetes can see that it is not root.
    assert told["USER"] == "10001"
    assert json.loads(told["ENTRYPOINT"]) == ["headwater", "serve"]
    assert told["STOPSIGNAL"] == "SIGTERM"
    assert f":9404{HEALTH}'" in told["HEALTHCHECK"]
    for name, rest in instructions:
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert all((ROOT / source).exists() for source in sources)
    _check_settings(_image_variables())


def test_hadolint_has_nothing_against_the_image() -> None:
    # It comes from PyPI, beside the interpreter, for those machines that it is built for.
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent)
    if hadolint is None:
        skip_or_fail("this test needs hadolint, of which there is no wheel for this machine")
    _run(hadolint, str(FILES / "Dockerfile"))


def test_the_compose_file_is_a_cluster() -> None:
    services = yaml.safe_load((FILES / "compose.yaml").read_text())["services"]
    ensemble = [each for name, each in services.items() if name.startswith("zookeeper")]
    brokers = [each for name, each in services.items() if name.startswith("broker")]
    assert [each["environment"]["ZOO_MY_ID"] for each in ensemble] == ["1", "2", "3"]
    ids, racks, volumes = set(), set(), set()
    for broker in brokers:
        values = _check_settings({**_image_variables(), **broker["environment"]})
        ids.add(values["broker.id"])
        racks.add(values["broker.rack"])
        volumes.add(broker["volumes"][0])
        assert broker["volumes"][0].endswith(f":{values['log.dirs']}")
        assert f":9404{READY}'" in broker["healthcheck"]["test"][-1]
        assert set(broker["depends_on"]) <= services.keys()
    assert len(brokers) == len(ids) == len(racks) == len(volumes) == 3


def _check_settings(variables: dict[str, str]) -> dict[str, str | None]:
    """A broker would start with them, and every one of ours is a setting."""
    ours = {name: value for name, value in variables.items() if name.startswith("HEADWATER_")}
    values = serve_settings(
        listen=[], data_dirs=[], broker_id=None, config_path=None, assignments=[], environment=ours
    )
    taken = [name for name, source in values.sources.items() if source == "the environment"]
    assert len(taken) == len(ours)
    return {name: values.render(name) for name in ("broker.id", "broker.rack", "log.dirs")}
