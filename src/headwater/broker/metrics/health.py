"""Whether a broker is well, and whether it should be given work: what load balancers ask.

*Well* is a broker that can go on, also one that starts, recovers or stops: whoever restarts it when
it is not well must not do so meanwhile. *Ready* is one that serves: it has started, the cluster
counts on it, all of its disks work, and it is not about to stop. What stands against either is told
in sentences.

The pages are JSON: `{"status": "ready"}` with 200, or with 503
`{"status": "not ready", "reasons": ["The broker stops."]}`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from headwater.base.background_tasks import BackgroundTasks
from headwater.cluster.member import ClusterMember
from headwater.net.http_endpoint import HttpAnswer
from headwater.storage.directories.log_directories import LogDirectories
from headwater.storage.directories.log_directory import LoadProgress

HEALTH: Final = "/health"
READY: Final = "/ready"

_JSON: Final = "application/json"


class BrokerHealth:
    """Of one broker, from its start to its end; its owner tells it what the broker does."""

    def __init__(self, tasks: BackgroundTasks) -> None:
        self._tasks = tasks
        #: Why no work is wanted, whatever else holds; empty while the broker serves.
        self._obstacle = "The broker starts."
        self._member: ClusterMember | None = None
        self._directories: LogDirectories | None = None

    def connects(self) -> None:
        """It has no metadata store yet."""
        self._obstacle = "The broker waits for its metadata store."

    def loads(self, progress: LoadProgress) -> None:
        """It opens its logs, and has come so far."""
        verb = "recovers" if progress.is_recovering else "loads"
        done = f"{progress.done} of {progress.total} are done"
        self._obstacle = f"The broker {verb} its logs: {done}."

    def joins(self) -> None:
        """It registers, and waits for the controller."""
        self._obstacle = "The broker joins the cluster."

    def serves(self, member: ClusterMember, directories: LogDirectories) -> None:
        """It has started."""
        self._obstacle = ""
        self._member = member
        self._directories = directories

    def stops(self) -> None:
        """It is about to end."""
        self._obstacle = "The broker stops."

    def faults(self) -> list[str]:
        """Why the broker is not well."""
        failure = self._tasks.failure
        return [] if failure is None else [str(failure)]

    def obstacles(self) -> list[str]:
        """Why it should be given no work."""
        reasons = self.faults()
        if self._obstacle:
            reasons.append(self._obstacle)
        member, directories = self._member, self._directories
        if self._obstacle or member is None or directories is None:
            return reasons
        if not member.has_session:
            reasons.append("The broker has no session with the metadata store.")
        elif not member.is_up_to_date:
            reasons.append("The controller has not answered the broker's registration yet.")
        reasons += [str(each.failure) for each in directories.directories if not each.is_online]
        return reasons

    def answer(self, path: str) -> HttpAnswer | None:
        """The page of a path, None for a path of others."""
        if path == HEALTH:
            return _page("healthy", self.faults())
        if path == READY:
            return _page("ready", self.obstacles())
        return None


def _page(word: str, reasons: Sequence[str]) -> HttpAnswer:
    fields: dict[str, object] = {"status": f"not {word}" if reasons else word}
    if reasons:
        fields["reasons"] = reasons
    body = json.dumps(fields).encode() + b"\n"
    return HttpAnswer(body, 503 if reasons else 200, _JSON)
