"""The sample is what built-in pipelines can read, in topics of its own."""

import json

import pytest

from headwater.base.errors import InvalidConfigError
from headwater.pipeline.builtin.sample import send_sample
from headwater.pipeline.demo.topics import end_offsets, read_topic
from headwater.testing.running_broker import RunningBroker
from tests.support.command import run_command


def test_orders_and_payments_are_sent_and_told_of(headwater_fresh_broker: RunningBroker) -> None:
    address = headwater_fresh_broker.bootstrap
    told = run_command("pipeline", "sample", "--orders", 60, "--bootstrap-server", address)
    assert (told.exit_code, told.stderr) == (0, "")
    orders, payments = (read_topic(address, name) for name in ("shop-orders", "shop-payments"))
    assert told.lines == [
        f"Wrote {len(orders)} records to shop-orders and {len(payments)} records to "
        "shop-payments; 1 of them is malformed on purpose.",
        "Try: headwater pipeline run aggregate --once --set orders=shop-orders",
    ]
    whole = [record for record in orders if (record.value or b"").endswith(b"}")]
    assert {"order_id", "placed_at", "amount_cents"} <= json.loads(whole[0].value or b"").keys()

    again = run_command("pipeline", "sample", "--bootstrap-server", address)
    assert again.exit_code == 1
    assert again.stderr == (
        "headwater: The topic 'shop-orders' is there already; "
        "--prefix gives the topics other names.\n"
    )


def test_a_topic_that_is_there_is_left_as_it_is(headwater_fresh_broker: RunningBroker) -> None:
    address = headwater_fresh_broker.bootstrap
    headwater_fresh_broker.create_topic("x-payments", partitions=2)
    with pytest.raises(InvalidConfigError, match="'x-payments' is there already"):
        send_sample(address, prefix="x-")
    assert set(end_offsets(address, ["x-payments"]).values()) == {0}
    sample = send_sample(address, prefix="y-", order_count=5)
    assert (sample.orders_topic, sample.payments_topic) == ("y-orders", "y-payments")
