"""Numbers that stand in for names which a build of Python lacks."""

import fcntl
import importlib.util
import os
import socket
import sys
from types import ModuleType

import pytest

from headwater.base import linux_numbers

_NAMES = {
    "F_OFD_GETLK": fcntl,
    "F_OFD_SETLK": fcntl,
    "RWF_NOWAIT": os,
    "TCP_NOTSENT_LOWAT": socket,
}


def imported_anew() -> ModuleType:
    spec = importlib.util.spec_from_file_location("numbers_anew", linux_numbers.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in _NAMES.items():
        monkeypatch.delattr(module, name, raising=False)


@pytest.mark.usefixtures("without_names")
def test_on_linux_a_python_without_the_names_has_the_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    anew = imported_anew()
    assert [getattr(anew, name) for name in _NAMES] == [36, 37, 8, 25]


@pytest.mark.usefixtures("without_names")
def test_elsewhere_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    anew = imported_anew()
    assert [getattr(anew, name) for name in _NAMES] == [None] * len(_NAMES)


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers are Linux's")
def test_the_numbers_are_those_that_python_has() -> None:
    for name, module in _NAMES.items():
        number = getattr(linux_numbers, name)
        assert number == getattr(module, name, number)
