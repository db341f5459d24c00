"""What a ZooKeeper server reads when it starts: `zoo.cfg`, and who of an ensemble it is.

The tick is short, because it is also what sessions are rounded up to when they expire, and
Headwater's tests and first tries use sessions of one or two seconds. The limits that are counted in
ticks are accordingly large: a member may be silent for five seconds before the others go on
without it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

TICK_MS: Final = 500
SESSION_TIMEOUT_MS_MIN: Final = 1_000
SESSION_TIMEOUT_MS_MAX: Final = 120_000
_INIT_LIMIT_TICKS: Final = 20
_SYNC_LIMIT_TICKS: Final = 10


class Member(NamedTuple):
    """One server of an ensemble, as the others know it."""

    member_id: int
    host: str
    #: Where the leader listens to its followers.
    peer_port: int
    #: Where leaders are elected.
    election_port: int


def write_configuration(
    directory: Path, host: str, port: int, member_id: int, members: Sequence[Member]
) -> Path:
    """Write the files of a server into its directory, and return what it is to be started with.

    A server without members stands alone.
    """
    data = directory / "data"
    data.mkdir(parents=True, exist_ok=True)
    lines = {
        "dataDir": str(data),
        "clientPort": str(port),
        "clientPortAddress": host,
        "tickTime": str(TICK_MS),
        "initLimit": str(_INIT_LIMIT_TICKS),
        "syncLimit": str(_SYNC_LIMIT_TICKS),
        "minSessionTimeout": str(SESSION_TIMEOUT_MS_MIN),
        "maxSessionTimeout": str(SESSION_TIMEOUT_MS_MAX),
        # All brokers and tools of a development cluster come from one address.
        "maxClientCnxns": "0",
        "autopurge.snapRetainCount": "3",
        "autopurge.purgeInterval": "1",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr,stat,ruok,mntr,conf,cons,dump,isro",
    }
    for member in members:
        lines[f"server.{member.member_id}"] = (
            f"{member.host}:{member.peer_port}:{member.election_port}"
        )
    if members:
        (data / "myid").write_text(f"{member_id}\n")
    path = directory / "zoo.cfg"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return path
