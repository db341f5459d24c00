"""A canary as a command: it runs until its options, or Ctrl-C, say so, and reports now and then."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

from headwater.base.printable import printable
from headwater.cli.audit.canary.canary import Canary, CanaryOptions
from headwater.cli.audit.canary.ledger import BrokerFigures
from headwater.cli.audit.canary.report import metric_pieces, print_figures
from headwater.cli.audit.metrics_page import metrics_page
from headwater.cli.interruption import cancelled_by_signals
from headwater.client.connection.cluster_connection import ClusterConnection


class CanaryProcess:
    def __init__(
        self,
        servers: str,
        options: CanaryOptions,
        *,
        report_s: float,
        late_s: float,
        address: tuple[str, int] | None,
        as_json: bool,
    ) -> None:
        self._servers = servers
        self._options = options
        self._report_s = report_s
        self._late_s = late_s
        self._address = address
        self._as_json = as_json
        self.figures: list[BrokerFigures] = []
        self.has_wrong = False
        #: Whether somebody ended it before it was through.
        self.was_stopped = False

    async def run(self, connection: ClusterConnection) -> None:
        canary = Canary(connection, self._servers, self._options, _warn)

        def figures() -> list[BrokerFigures]:
            return canary.ledger.figures(time.monotonic(), self._late_s)

        def pieces() -> Iterator[str]:
            return metric_pieces(figures())

        async def report() -> None:
            while True:
                await asyncio.sleep(self._report_s)
                print_figures(figures(), as_json=self._as_json)

        async with canary, metrics_page(self._address, pieces):
            reporting = asyncio.ensure_future(report())
            running = asyncio.ensure_future(canary.run())
            try:
                with cancelled_by_signals():
                    await asyncio.wait({reporting, running}, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self.was_stopped = True
            finally:
                self.figures = figures()
                self.has_wrong = canary.ledger.has_wrong
                for task in (reporting, running):
                    task.cancel()
                ended = await asyncio.gather(reporting, running, return_exceptions=True)
            for error in ended:
                if isinstance(error, Exception):
                    raise error
            print_figures(self.figures, as_json=self._as_json)


def _warn(sentence: str) -> None:
    print(f"headwater: {printable(sentence)}", file=sys.stderr, flush=True)
