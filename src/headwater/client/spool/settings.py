"""The settings of a producer's spool: `Producer(spool_dir=...)` reads them."""

from typing import Final

from headwater.base.settings import Setting, SettingKind, SettingTable

_ROWS = (
    Setting(
        "spool.fsync",
        SettingKind.STRING,
        "always",
        "When the spool's files are forced to disk: before each send returns (always), every"
        " spool.fsync.interval.ms (interval), or whenever the operating system does it (never). A"
        " process that is killed loses nothing with any of them; a machine that loses power keeps"
        " only what was forced.",
        choices=("always", "interval", "never"),
    ),
    Setting(
        "spool.fsync.interval.ms",
        SettingKind.LONG,
        1000,
        "How long a record may wait to be forced to disk, with spool.fsync=interval.",
        lower=1,
    ),
    Setting(
        "spool.max.bytes",
        SettingKind.LONG,
        1 << 30,
        "How much disk the spool may take for what is not shipped yet. When it is full,"
        " buffer.full.policy says whether a send waits for room or drops its record.",
        lower=4096,
    ),
    Setting(
        "spool.segment.bytes",
        SettingKind.INT,
        16 << 20,
        "The size at which the spool begins a new file, at most a quarter of spool.max.bytes. Disk"
        " space is freed one whole file at a time.",
        lower=1024,
    ),
    Setting(
        "spool.window.records",
        SettingKind.INT,
        10_000,
        "How far shipping may run ahead of the position that is safely on disk, which is also the"
        " largest number of records that a crash can cause to be sent a second time.",
        lower=1,
    ),
)

SPOOL_SETTINGS: Final = SettingTable("spool", _ROWS)
