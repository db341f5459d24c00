"""`headwater trace` on any cluster: what the record alone tells, and where groups are."""

import json

from tests.support.brokers.clusters import Cluster
from tests.support.command import run_command


def test_the_record_and_the_groups_are_told(cluster: Cluster, topic: str, group: str) -> None:
    where = ("-b", cluster.bootstrap)
    told = run_command("trace", f"{topic}-2@1", *where)
    assert told.exit_code == 0, told.stderr
    assert "created" in told.stdout
    assert f"{group} has not committed past {topic}-2@1: it is 1 offset behind." in told.lines
    # `__audit` is made with the first minute, and Apache Kafka has none.
    assert any("__audit" in line or "not published yet" in line for line in told.lines)
    document = json.loads(run_command("trace", f"{topic}-2@0", "--json", *where).stdout)
    (found,) = document["messages"]
    assert found["id"] == f"{topic}-2@0"
    assert found["events"][0]["event"] == "created"
    assert any(note.startswith(f"{group} has committed past") for note in found["notes"])
    slow = run_command("trace", "slow", topic, *where)
    assert slow.exit_code == 0
    assert "nobody tells" in slow.stderr or "Nothing is told" in slow.stderr
