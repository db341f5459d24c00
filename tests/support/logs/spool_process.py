"""A process that spools and ships until it is killed: `python -m tests.support.logs.spool_process`.

Arguments: the bootstrap servers, the topic, the spool's directory, the first number to send, how
many, the window, and a moment at which the process kills itself, `step:count`, or "never". Values
are the numbers; when a number is in the spool, and not before, a line on the standard output says
so. Without a moment to die it goes on until all is delivered.

The steps are those of the parts it is made of: each file operation before and after it happens,
each record given to the ordinary producer, and each outcome.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from headwater import Producer
from headwater.client.producer.batches.delivery_future import DeliveryFuture
from headwater.client.spool.files.local_files import Buffer, LocalFile, LocalFiles
from headwater.client.spool.files.record import SpooledRecord
from headwater.client.spool.outcome import Outcome
from headwater.client.spool.shipping.producer import SHIPPING_SETTINGS
from headwater.client.spool.shipping.shipper import Shipper
from headwater.client.spool.spool import Spool

SEGMENT_BYTES = 1024
FLUSH_TIMEOUT_S = 60.0


class Death:
    """Comes at the given occurrence of a step."""

    def __init__(self, moment: str) -> None:
        self._step, _, count = moment.partition(":")
        self._left = int(count or 0)

    def may_come(self, step: str) -> None:
        if step != self._step:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalFile(LocalFile):
    def __init__(self, descriptor: int, kind: str, death: Death) -> None:
        super().__init__(descriptor)
        self._kind = kind
        self._death = death

    def write_at(self, position: int, data: Buffer) -> None:
        self._death.may_come(f"before-{self._kind}-write")
        half = len(data) // 2
        super().write_at(position, data[:half])
        self._death.may_come(f"amid-{self._kind}-write")
        super().write_at(position, data)
        self._death.may_come(f"after-{self._kind}-write")

    def sync(self) -> None:
        super().sync()
        self._death.may_come(f"after-{self._kind}-sync")


class MortalFiles(LocalFiles):
    def __init__(self, death: Death) -> None:
        self._death = death

    def open(self, path: str, *, create: bool = False) -> LocalFile:
        name = os.path.basename(path)
        kind = "segment" if name.endswith(".spool") else name
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        return MortalFile(os.open(path, flags, 0o644), kind, self._death)

    def remove(self, path: str) -> None:
        self._death.may_come("before-remove")
        super().remove(path)
        self._death.may_come("after-remove")


class MortalProducer(Producer):
    def __init__(self, config: Mapping[str, object], death: Death) -> None:
        super().__init__(config)
        self._death = death

    def send(self, *arguments: Any, **keywords: Any) -> DeliveryFuture:
        self._death.may_come("before-send")
        future = super().send(*arguments, **keywords)
        self._death.may_come("after-send")
        return future


def _main(
    bootstrap: str, topic: str, directory: str, first: int, count: int, window: int, moment: str
) -> None:
    death = Death(moment)

    def note(number: int, outcome: Outcome) -> None:
        death.may_come("outcome")

    spool = Spool(directory, segment_bytes=SEGMENT_BYTES, files=MortalFiles(death))
    settings = {**SHIPPING_SETTINGS, "bootstrap.servers": bootstrap, "linger.ms": 1}
    shipper = Shipper(spool, lambda: MortalProducer(settings, death), note, window_records=window)
    shipper.start()
    for number in range(first, first + count):
        now_ms = time.time_ns() // 1_000_000
        spool.append(SpooledRecord(topic, 0, None, b"%d" % number, (), now_ms))
        os.write(sys.stdout.fileno(), b"%d\n" % number)
    shipper.wait_shipped(spool.next_number, FLUSH_TIMEOUT_S)
    shipper.stop()
    spool.close()


if __name__ == "__main__":
    _main(
        sys.argv[1],
        sys.argv[2],
        sys.argv[3],
        first=int(sys.argv[4]),
        count=int(sys.argv[5]),
        window=int(sys.argv[6]),
        moment=sys.argv[7],
    )
