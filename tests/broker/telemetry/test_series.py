"""The series of clients' metrics: what they are called, what a push does to them, their bound."""

from __future__ import annotations

from headwater.broker.telemetry.metrics_data import Point, PointKind
from headwater.broker.telemetry.samples import Sample, family_name, info_of, samples_of
from headwater.broker.telemetry.series import ClientSeries

GAUGE, COUNTER, SUMMARY = PointKind.GAUGE, PointKind.COUNTER, PointKind.SUMMARY


def sample(
    name: str, value: float, kind: PointKind = GAUGE, *, by: str = "i", is_delta: bool = False
) -> Sample:
    return Sample(name, kind, f'{{client_instance_id="{by}"}}', value, 0, is_delta)


def values(series: ClientSeries) -> dict[tuple[str, str], float]:
    return {
        (name, each.labels): each.value for name, _, shown in series.families() for each in shown
    }


def series_of(series_max: int = 100) -> ClientSeries:
    return ClientSeries(lambda: series_max)


ANN, BOB = '{client_instance_id="i"}', '{client_instance_id="j"}'


def test_names() -> None:
    kafka = "org.apache.kafka."
    assert family_name(f"{kafka}consumer.a-b.avg", GAUGE) == "headwater_client_consumer_a_b_avg"
    assert family_name(f"{kafka}a.total", COUNTER) == "headwater_client_a_total"
    assert family_name(f"{kafka}a", COUNTER) == "headwater_client_a_total"
    assert family_name("z\u00fcrich", GAUGE) == "headwater_client_z_rich"
    assert family_name("", GAUGE) == family_name(kafka, GAUGE) == ""
    assert family_name("x" * 201, GAUGE) == ""


def test_nobody_passes_for_another_instance() -> None:
    who = {"client_instance_id": "i"}
    forged = Point("a", GAUGE, {"client_instance_id": "j", "client.instance.id": "j"}, 1)
    strange = Point("a", GAUGE, {"__name__": "x", "1": "x", "le": "x", "": "x"}, 1)
    found, refused_count = samples_of([forged, strange], who)
    assert [each.labels for each in found] == [
        '{client_instance_id="i"}',
        '{label_1="x",label___name__="x",label_le="x",client_instance_id="i"}',
    ]
    assert refused_count == 0


def test_what_is_too_long_or_passes_for_information_is_not_shown() -> None:
    long = {"a": "x" * 600, "b": "x" * 600}
    points = [Point("a", GAUGE, long, 1), Point("info", GAUGE, {}, 1), Point("", GAUGE, {}, 1)]
    assert samples_of(points, {}) == ([], 3)
    info = info_of(long, {"client_id": "c"})
    assert info is not None and info.labels == '{client_id="c"}'


def test_values_are_replaced_and_deltas_are_added() -> None:
    series = series_of()
    for _ in range(2):
        counted = Sample("s", SUMMARY, ANN, 0.5, 2, is_delta=True)
        series.take("i", [sample("a", 3), sample("b", 3, is_delta=True), counted], 0, 10)
    assert values(series) == {("a", ANN): 3, ("b", ANN): 6, ("s", ANN): 1.0}
    [summary] = [shown for name, _, shown in series.families() if name == "s"]
    assert [each.seen_count for each in summary] == [4]


def test_what_is_not_pushed_any_more_is_forgotten() -> None:
    series = series_of()
    series.take("i", [sample("a", 1), sample("b", 1)], 0, 10)
    series.take("j", [sample("a", 2, by="j")], 5, 15)
    series.take("i", [sample("a", 3)], 10, 20)
    assert values(series) == {("a", ANN): 3, ("a", BOB): 2}
    assert [*series.forget_expired(15)]
    assert values(series) == {("a", ANN): 3}
    assert [*series.forget_expired(20)]
    assert values(series) == {} and len(series) == 0


def test_a_value_that_is_not_known_any_more_goes() -> None:
    series = series_of()
    series.take("i", [sample("a", 1)], 0, 10)
    series.take("i", [sample("a", float("nan")), sample("b", float("nan"))], 1, 11)
    assert values(series) == {}


def test_their_number_is_bounded_and_those_there_go_on() -> None:
    series = series_of(2)
    series.take("i", [sample("a", 1), sample("b", 1), sample("c", 1)], 0, 10)
    series.take("i", [sample("a", 2), sample("c", 2)], 1, 11)
    assert values(series) == {("a", ANN): 2, ("b", ANN): 1}
    assert (len(series), series.dropped_count) == (2, 2)
    assert [*series.forget_expired(11)]
    series.take("j", [sample("c", 3, by="j")], 12, 22)
    assert values(series) == {("c", BOB): 3}


def test_a_family_is_of_one_kind() -> None:
    series = series_of()
    series.take("i", [sample("a", 1)], 0, 10)
    series.take("j", [sample("a", 2, COUNTER, by="j")], 0, 10)
    series.take("i", [sample("a", 2, SUMMARY)], 0, 10)
    assert values(series) == {("a", ANN): 1}
    assert series.dropped_count == 2


def test_an_instance_has_one_line_about_itself() -> None:
    series = series_of()
    for member in ("m1", "m2"):
        info = info_of({"group_member_id": member}, {"client_instance_id": "i"})
        assert info is not None
        series.take("i", [info], 0, 10)
    [(_, names)] = values(series)
    assert names == '{group_member_id="m2",client_instance_id="i"}'
