"""The demo's last step: the tables shown, drawn, and compared with what they must be."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headwater.base.extras import how_to_install
from headwater.pipeline.demo.calculation import Rules, calculate
from headwater.pipeline.demo.chart import chart_is_possible, draw_chart
from headwater.pipeline.demo.comparison import (
    Verdict,
    compare_archive,
    compare_closed_revenue,
    compare_paid_orders,
    compare_rejected,
    compare_revenue,
    judge_findings,
    judge_lag,
)
from headwater.pipeline.demo.results import (
    read_archive,
    read_paid_orders,
    read_revenue,
    rejected_in_topic,
    revenue_in_topic,
)
from headwater.pipeline.demo.screen import (
    Screen,
    lag_table,
    paid_orders_table,
    rejected_table,
    revenue_table,
    verdict_table,
)
from headwater.pipeline.demo.sending import SentRecord
from headwater.pipeline.demo.shop import MINUTE_MS, ORDERS, PAYMENTS, ShopStream
from headwater.pipeline.demo.topics import lag_by_group, read_topic
from headwater.pipeline.lake.lake_table import LakeTable
from headwater.pipeline.lake.verify.verify import verify

REVENUE: Final = "revenue"
REJECTED: Final = tuple(f"{topic}.rejected" for topic in (ORDERS, PAYMENTS))
#: What each pipeline reads; the group that its progress is shown as has its name.
READ_TOPICS: Final = {
    "archive": (ORDERS, PAYMENTS),
    "aggregate": (ORDERS,),
    "join": (ORDERS, PAYMENTS),
}
#: The variables of the pipelines as their files have them.
RULES: Final = Rules(
    window_ms=MINUTE_MS, lateness_ms=10 * MINUTE_MS, payment_within_ms=15 * MINUTE_MS
)


class Outcome:
    """What is there after the pipelines have ended."""

    def __init__(
        self, address: str, lake: Path, stream: ShopStream, sent: list[SentRecord]
    ) -> None:
        self._address = address
        self._archive = lake / "archive"
        self._stream = stream
        self._sent = sent
        self._revenue = read_revenue(lake / "revenue")
        self._paid_orders = read_paid_orders(lake / "paid_orders")
        self._rejected = [
            record for topic in REJECTED for record in rejected_in_topic(read_topic(address, topic))
        ]
        self._lags = lag_by_group(address, READ_TOPICS)

    def show(self, screen: Screen, chart: Path) -> list[Verdict]:
        screen.step(
            "What came of it", "The tables, read with Arrow, and the topics, with the client."
        )
        screen.show(revenue_table(self._revenue))
        screen.show(paid_orders_table(self._paid_orders))
        screen.show(rejected_table(self._rejected))
        screen.show(lag_table(self._lags))
        self._draw(screen, chart)
        screen.step(
            "Is it right?",
            "Everything is calculated once more from the records that were sent, in plain Python "
            "and without Spark, and compared row by row.",
        )
        verdicts = self._verdicts()
        screen.show(verdict_table(verdicts))
        return verdicts

    def _draw(self, screen: Screen, chart: Path) -> None:
        if not chart_is_possible():
            screen.say(f"There is no chart: matplotlib is missing; {how_to_install('demo')}")
            return
        draw_chart(self._revenue, self._paid_orders, RULES.window_ms, chart)
        screen.say(f"The chart is in {chart.resolve()}.")

    def _verdicts(self) -> list[Verdict]:
        expected = calculate(self._stream, RULES)
        archive = LakeTable(self._archive)
        findings = verify(archive, bootstrap_servers=self._address)
        return [
            compare_archive(self._sent, read_archive(self._archive)),
            judge_findings(
                [finding.sentence for finding in findings if finding.is_problem],
                f"{len(archive.snapshot().coverage)} partitions in {len(archive.files())} files",
            ),
            compare_revenue(expected, self._revenue),
            compare_closed_revenue(expected, revenue_in_topic(read_topic(self._address, REVENUE))),
            compare_paid_orders(expected, self._paid_orders),
            compare_rejected(expected, self._rejected),
            judge_lag(self._lags),
        ]
