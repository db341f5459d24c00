"""What a real Apache Kafka wrote is sound, and both dumpers show the same of it."""

from pathlib import Path

import pytest

from headwater.storage.inspection.dump.dump import DumpOptions
from headwater.storage.inspection.read_only_files import ReadOnlyFiles
from headwater.storage.inspection.verify.verify import verify_directory
from headwater.testing.apache_kafka import dump_log
from headwater.testing.apache_kafka.dump import ERRORS_FOLLOW
from tests.support.kafka.data import KafkaDataDir, shared_kafka_data_dirs
from tests.support.kafka.node import require_apache_kafka
from tests.support.logs.dumps import DEEP, text_of

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module", params=["clean", "crashed"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KafkaDataDir:
    require_apache_kafka()
    clean, crashed = shared_kafka_data_dirs(tmp_path_factory)
    return clean if request.param == "clean" else crashed


def test_nothing_is_wrong_with_it(data: KafkaDataDir) -> None:
    findings = verify_directory(ReadOnlyFiles(), str(data.log_dir), deep=True)
    assert [str(finding) for finding in findings if finding.is_problem] == []
    # What compaction and deletion have replaced waits to be removed; nothing else is worth a note,
    # but for a checkpoint that was being written when Kafka was killed.
    noted = {".deleted"} if data.is_clean else {".deleted", ".tmp"}
    assert {Path(finding.path).suffix for finding in findings} <= noted


@pytest.mark.parametrize(("flags", "options"), [((), DumpOptions()), (("--deep-iteration",), DEEP)])
def test_both_dumpers_show_the_same(
    data: KafkaDataDir, flags: tuple[str, ...], options: DumpOptions
) -> None:
    # Apache's dumper ends with an exception at an index that a crash left at its full length.
    suffixes = {".log", ".txnindex", ".snapshot"}
    if data.is_clean:
        suffixes |= {".index", ".timeindex"}
    files = sorted(path for path in data.log_dir.glob("[!_]*/0*") if path.suffix in suffixes)
    report, _, _ = dump_log(files, *flags).partition(f"{ERRORS_FOLLOW}\n")
    lines = [
        line for path in files for line in (f"Dumping {path}", *text_of(path, options=options)[0])
    ]
    assert len(lines) > 500
    assert lines == report.splitlines()
