"""numpy belongs to the client and pyarrow to those who ask for it: the broker loads neither."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.brokers.serve_process import serving

BROKER = "import headwater.cli.app, headwater.cli.serve.broker_process, headwater.broker.server"
CLIENT = "import headwater; headwater.Producer, headwater.Consumer, headwater.Admin"


def loaded(statement: str) -> set[str]:
    """The top-level modules of a process that does just this."""
    script = f"{statement}\nimport sys\nprint(*(name.partition('.')[0] for name in sys.modules))"
    return set(
        subprocess.run(
            [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
        ).stdout.split()
    )


def test_the_broker_loads_neither_numpy_nor_pyarrow() -> None:
    modules = loaded(BROKER)
    assert "headwater" in modules
    assert not modules & {"numpy", "pyarrow"}


def test_a_running_broker_loads_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with serving(tmp_path) as broker:
        _, _, errors = broker.stop()
    imported = set(re.findall(r"\| +([\w.]+)$", errors, re.M))
    assert "headwater.broker.server" in imported
    assert not imported & {"numpy", "pyarrow"}


@pytest.mark.parametrize(
    "statement", [CLIENT, "import headwater.client.columns.encoding.arrow_encoder"]
)
def test_the_client_loads_pyarrow_only_when_it_is_used(statement: str) -> None:
    assert "pyarrow" not in loaded(statement)


def test_a_missing_pyarrow_is_told_in_one_sentence() -> None:
    script = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "from headwater.client.columns.arrow.batches import columns_to_arrow\n"
        "try:\n"
        "    columns_to_arrow([])\n"
        "except ImportError as error:\n"
        "    sys.modules[str(error).replace(' ', '_').replace('.', '')] = sys\n"
    )
    assert any("pip_install_'[arrow]'" in name for name in loaded(script))
