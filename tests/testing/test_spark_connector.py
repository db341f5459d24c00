"""Which jars of Spark's own connector a Spark is given."""

from pathlib import Path

import pytest

from headwater.testing.spark_connector import artifact_name, missing_jars


@pytest.mark.parametrize(
    ("jar", "name"),
    [
        ("kafka-clients-3.9.2.jar", "kafka-clients"),
        ("spark-sql-kafka-0-10_2.13-4.2.0.jar", "spark-sql-kafka-0-10_2.13"),
        ("spark-tags_2.13-4.2.0-preview1.jar", "spark-tags_2.13"),
        ("commons-pool2-2.13.1.jar", "commons-pool2"),
        ("unversioned.jar", "unversioned.jar"),
    ],
)
def test_the_name_of_an_artifact_is_that_of_its_jar_without_the_version(
    jar: str, name: str
) -> None:
    assert artifact_name(Path("/libs", jar)) == name


def test_what_spark_has_in_another_version_is_left_out() -> None:
    wanted = [Path("/libs/lz4-java-1.8.0.jar"), Path("/libs/kafka-clients-3.9.2.jar")]
    present = [Path("/spark/lz4-java-1.11.0.jar"), Path("/spark/kafka-1.0.jar")]
    assert missing_jars(wanted, present) == wanted[1:]
