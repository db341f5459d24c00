"""Whether a worker is a member of its group, and its cluster answers: else nothing is handled."""

from __future__ import annotations

from typing import Final

from headwater.delivery.worker.clients import WorkerConsumer

#: A moment without a connection is no trouble: a broker may be restarted, say.
_UNREACHED_S: Final = 5.0


class ClusterReach:
    """Looks now and then, so that whoever asks need not wait for an answer."""

    def __init__(self, consumer: WorkerConsumer, now_s: float) -> None:
        self._consumer = consumer
        self._is_member = False
        self._reached_s = now_s
        #: What is wrong, as a sentence; empty if nothing is.
        self.trouble = "It is no member of its group yet."

    def look(self, now_s: float) -> None:
        if not self._is_member:
            self._is_member = self._consumer.group_identity().generation_id >= 0
            if not self._is_member:
                return
        failure = self._consumer.connection_failure
        if failure is None:
            self._reached_s = now_s
        is_long = now_s - self._reached_s >= _UNREACHED_S
        self.trouble = f"The cluster cannot be reached: {failure}" if is_long else ""
