"""The committed message classes are what the generator writes, and need no kio at run time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kafka.node import require_java_client
from tools.generate_messages import MESSAGES_FOLDER, write_messages


@pytest.mark.kafka
def test_the_committed_files_are_what_the_generator_writes(tmp_path: Path) -> None:
    write_messages(tmp_path, require_java_client().jars)
    written = {path.name: path.read_text() for path in tmp_path.glob("*.py")}
    committed = {path.name: path.read_text() for path in MESSAGES_FOLDER.glob("*.py")}
    assert written.keys() == committed.keys()
    for name, text in written.items():
        assert committed[name] == text, f"run python -m tools.generate_messages: {name} differs"


@pytest.mark.kafka
def test_modules_of_apis_that_are_gone_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "gone.py").write_text("")
    write_messages(tmp_path, require_java_client().jars)
    assert not (tmp_path / "gone.py").exists()
    assert (tmp_path / "metadata.py").exists()


def test_kio_is_not_imported_at_run_time() -> None:
    program = (
        "import sys\n"
        "from headwater.wire import codec, frames\n"
        "from headwater.wire.api_keys import ApiKey, request_class\n"
        "for key in ApiKey:\n"
        "    codec.encode(request_class(key)(), key.schema_versions.highest)\n"
        "print('kio' in sys.modules)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert finished.stdout == "False\n"
