"""Where figures come from: they mean nothing without the machine that gave them."""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.base.python_build import python_build


@dataclass(frozen=True, slots=True)
class Machine:
    processor: str
    core_count: int
    memory_bytes: int
    kernel: str
    python: str
    file_system: str

    @classmethod
    def describe(cls, directory: str) -> Machine:
        """This machine, with the file system that holds `directory`."""
        return cls(
            processor=_processor(),
            core_count=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            kernel=f"{platform.system()} {platform.release()}",
            python=str(python_build()),
            file_system=_file_system(os.path.realpath(directory)),
        )

    @property
    def title(self) -> str:
        return (
            f"{self.processor}, {self.core_count} cores, "
            f"{self.memory_bytes / 2**30:.0f} GiB of memory, {self.kernel}, {self.python}, "
            f"{self.file_system}"
        )

    def __str__(self) -> str:
        return f"Measured on {self.title}."

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _file_system(path: str) -> str:
    """The type of the mount that holds `path`: the one with the longest matching name."""
    best, kind = "", "an unknown file system"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount_point, mount_type, *_ = line.split()
        inside = path == mount_point or path.startswith(mount_point.rstrip("/") + "/")
        if inside and len(mount_point) >= len(best):
            best, kind = mount_point, mount_type
    return kind


def touch_memory(size_bytes: int) -> None:
    """Use so much free memory once, or half of what there is, and let go of it again.

    The memory of a virtual machine comes from its host when it is first used, and goes back some
    time after it was freed. Getting it may take ten times as long as writing to it, and whoever
    runs next would be charged for that.
    """
    size_bytes = min(size_bytes, _kernel_bytes("meminfo", "MemAvailable") // 2)
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            # Without huge pages in the kernel this is an error, and no loss.
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
        with memoryview(memory) as view:
            pages = view[:: mmap.PAGESIZE]
            pages[:] = bytes(len(pages))
            pages.release()


def resident_bytes() -> int:
    """This process's memory in use."""
    return _kernel_bytes("self/status", "VmRSS")


def resident_bytes_max() -> int:
    """The most memory that this process has had in use, without what its parent had."""
    return _kernel_bytes("self/status", "VmHWM")


def _kernel_bytes(file: str, wanted: str) -> int:
    for line in Path("/proc", file).read_text().splitlines():
        name, _, value = line.partition(":")
        if name == wanted:
            return int(value.split()[0]) * 1024
    raise RuntimeError(f"The kernel does not tell {wanted}.")


def descriptor_count() -> int:
    """How many descriptors this process has open, without the one that is used to count them."""
    return len(os.listdir("/proc/self/fd")) - 1
