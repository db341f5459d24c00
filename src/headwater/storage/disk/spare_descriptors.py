"""Descriptors that are held open for the moment in which there are no others.

A process may open so many files and no more, and whoever opens one too many is refused, be it a
peer that connects or a log that is to be synced. The latter must not fail for that. So some
descriptors are set aside: where opening a file is refused, one of them is closed and the file
opened in its place. They are taken back as soon as there are free ones again.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_NONE_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE})


class SpareDescriptors:
    """For all threads of a process that open files of logs."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._spare: list[int] = []
        weakref.finalize(self, _close_all, self._spare)
        self._refill()

    def opening(self, open_file: Callable[[], T]) -> T:
        """Do what opens a file, with a spare descriptor if there is no other."""
        while True:
            try:
                opened = open_file()
            except OSError as error:
                if error.errno not in _NONE_LEFT or not self._let_go():
                    raise
            else:
                if len(self._spare) < self._count:
                    self._refill()
                return opened

    def _let_go(self) -> bool:
        with self._lock:
            if self._spare:
                os.close(self._spare.pop())
                return True
            return False

    def _refill(self) -> None:
        with self._lock:
            try:
                while len(self._spare) < self._count:
                    self._spare.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                return


def _close_all(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())
