"""Sizes as people read them."""

from __future__ import annotations


def size_text(size_bytes: float) -> str:
    """A size for people: 1.5 GB."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if abs(size_bytes) < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "bytes" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"
