"""The releases of Apache Kafka that Headwater is measured against.

One is the broker to compare with, and its tools; the other is the newest Java client, which is
released to Maven Central ahead of brokers at times, with the definitions of all messages in it.
"""

from collections.abc import Callable

from headwater.java.installation import Installation
from headwater.java.installation import ProgramUnavailableError as ApacheKafkaUnavailableError
from headwater.java.release import Release

KAFKA_VERSION = "4.3.1"
CLIENTS_VERSION = "4.4.0"
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

CLIENTS_RELEASE = Release(
    program="Apache Kafka's Java client",
    version=CLIENTS_VERSION,
    directory_name=f"kafka-clients-{CLIENTS_VERSION}",
    project_name="java-client-to-test-with",
    artifacts=(
        ("org.apache.kafka", "kafka-clients", CLIENTS_VERSION),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
    ),
    java_version_min=11,
    download_size_mb=25,
    archived_jars=("kafka-clients-", "log4j-", "lz4-", "slf4j-", "snappy-", "zstd-"),
)

__all__ = [
    "CLIENTS_VERSION",
    "KAFKA_VERSION",
    "ApacheKafkaUnavailableError",
    "Installation",
    "find_clients",
    "find_installation",
    "resolve",
    "resolve_clients",
]


def find_installation() -> Installation | None:
    """The pinned broker if it is in the cache already; nothing is fetched."""
    return RELEASE.find()


def find_clients() -> Installation | None:
    """The pinned Java client if it is in the cache already; nothing is fetched."""
    return CLIENTS_RELEASE.find()


def resolve(report: Callable[[str], None] = lambda line: None) -> Installation:
    """The pinned broker, fetched through Maven if it is not in the cache yet."""
    return RELEASE.resolve(report)


def resolve_clients(report: Callable[[str], None] = lambda line: None) -> Installation:
    """The pinned Java client, fetched through Maven if it is not in the cache yet."""
    return CLIENTS_RELEASE.resolve(report)
