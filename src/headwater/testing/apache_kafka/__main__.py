"""`python -m headwater.testing.apache_kafka`: fetch Apache Kafka, or run one of its tools."""

import argparse
import os
import sys

from headwater.java.installation import cache_root
from headwater.testing.apache_kafka.resolve import (
    CLIENTS_VERSION,
    KAFKA_VERSION,
    ApacheKafkaUnavailableError,
    resolve,
    resolve_clients,
)
from headwater.testing.apache_kafka.tools import TOOLS, tool_command


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m headwater.testing.apache_kafka",
        description=(
            f"Apache Kafka {KAFKA_VERSION} and its Java client {CLIENTS_VERSION} from Maven "
            f"Central, kept in {cache_root()}."
        ),
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("resolve", help="fetch both, if need be, and print where they are")
    run = commands.add_parser("run", help="run one of its tools", epilog=", ".join(TOOLS))
    run.add_argument("tool", choices=TOOLS, metavar="TOOL")
    run.add_argument("args", nargs=argparse.REMAINDER, metavar="...", help="the tool's own")
    options = parser.parse_args()
    try:
        kafka = resolve(_tell)
        if options.command == "resolve":
            print(kafka.directory, resolve_clients(_tell).directory, sep="\n")
            return
    except ApacheKafkaUnavailableError as unavailable:
        sys.exit(str(unavailable))
    command = tool_command(options.tool, options.args, kafka)
    os.execv(command[0], command)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
