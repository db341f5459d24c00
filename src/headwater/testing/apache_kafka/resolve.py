"""The one release of Apache Kafka that Headwater is measured against."""

from collections.abc import Callable

from headwater.java.installation import Installation
from headwater.java.installation import ProgramUnavailableError as ApacheKafkaUnavailableError
from headwater.java.release import Release

KAFKA_VERSION = "4.1.2"
# Kafka's artifacts log through SLF4J 1.7 and leave the choice behind it open; its own distribution
# chooses Log4j 2, and so does this one.
LOG4J_VERSION = "2.25.3"

RELEASE = Release(
    program="Apache Kafka",
    version=KAFKA_VERSION,
    directory_name=f"apache-kafka-{KAFKA_VERSION}",
    project_name="apache-kafka-to-compare-with",
    artifacts=(
        ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
        ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
    ),
    # What the brokers of this release are compiled for.
    java_version_min=17,
    download_size_mb=55,
    # The others belong to Kafka Connect and to its web server, which nothing here runs.
    archived_jars=(
        "argparse4j-",
        "caffeine-",
        "jackson-annotations-",
        "jackson-core-",
        "jackson-databind-",
        "jackson-datatype-jdk8-",
        "jopt-simple-",
        "kafka-",
        "kafka_",
        "log4j-",
        "lz4-",
        "metrics-core-",
        "pcollections-",
        "scala-library-",
        "scala-logging_",
        "slf4j-",
        "snappy-",
        "zstd-",
    ),
)

__all__ = [
    "KAFKA_VERSION",
    "ApacheKafkaUnavailableError",
    "Installation",
    "find_installation",
    "resolve",
]


def find_installation() -> Installation | None:
    """The pinned release if it is in the cache already; nothing is fetched."""
    return RELEASE.find()


def resolve(report: Callable[[str], None] = lambda line: None) -> Installation:
    """The pinned release, fetched through Maven if it is not in the cache yet."""
    return RELEASE.resolve(report)
