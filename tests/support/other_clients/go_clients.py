"""Two clients in Go, kafka-go and franz-go, and how programs of ours with them are built.

`python -m tests.support.other_clients.go_clients` fetches the clients and builds the programs once,
into the cache beside the jars of Apache Kafka. A change of a program or of a version builds anew.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from headwater.java.installation import cache_root
from tests.support.other_clients.round_trips import DelayedRoundTrip

_TIMEOUT_S: Final = 90.0
_BUILD_TIMEOUT_S: Final = 600.0


class GoClient(NamedTuple):
    """A client, and a program of ours that uses it."""

    name: str
    package: str
    version: str
    source_name: str

    @property
    def source(self) -> Path:
        return Path(__file__).with_name(self.source_name)

    @property
    def program(self) -> Path:
        """Where the built program is kept, or would be."""
        digest = hashlib.sha256(self.source.read_bytes()).hexdigest()[:12]
        return cache_root() / f"{self.name}-{self.version}" / digest

    def build(self) -> None:
        """Build the program, unless it is there; it is whole or absent."""
        if self.program.is_file():
            return
        self.program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_root(), prefix="go-") as scratch:
            directory = Path(scratch)
            (directory / "main.go").write_bytes(self.source.read_bytes())
            for arguments in (
                ("mod", "init", "program"),
                ("get", f"{self.package}@{self.version}"),
                ("build", "-o", "program", "."),
            ):
                subprocess.run(
                    ["go", *arguments],
                    cwd=directory,
                    check=True,
                    capture_output=True,
                    timeout=_BUILD_TIMEOUT_S,
                    env={**os.environ, "GOFLAGS": "-buildvcs=false"},
                )
            os.replace(directory / "program", self.program)

    def round_trip(
        self, bootstrap: str, topic: str, group: str, message_count: int
    ) -> DelayedRoundTrip:
        """Write messages, some of them delayed, and read them as a group: see `round_trips`."""
        if not self.program.is_file():
            # Not every machine that tests everything else has Go.
            pytest.skip(
                f"this test needs a program with {self.name}: "
                "`python -m tests.support.other_clients.go_clients` builds it"
            )
        finished = subprocess.run(
            [self.program, bootstrap, topic, group, str(message_count)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        assert finished.stdout, finished.stderr
        return DelayedRoundTrip.parse(finished.stdout)


GO_CLIENTS: Final = (
    GoClient("kafka-go", "github.com/segmentio/kafka-go", "v0.4.51", "kafka_go.go"),
    GoClient("franz-go", "github.com/twmb/franz-go/pkg/kgo", "v1.22.2", "franz_go.go"),
)


def main() -> str | None:
    """What went wrong, if anything did."""
    for client in GO_CLIENTS:
        try:
            client.build()
        except FileNotFoundError:
            return f"{client.name} cannot be built: there is no go on the PATH."
        except subprocess.CalledProcessError as failed:
            complaint = failed.stderr.decode(errors="replace").strip()
            return f"{client.name} could not be built: {complaint}"
    return None


if __name__ == "__main__":
    sys.exit(main())
