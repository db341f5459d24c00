"""Spark's own log of a run: a file in the directory of the run, so that the terminal has sentences.

Spark logs every failure with a trace of a hundred lines, each query for itself. Whoever wants that
finds it in `spark.log`; the run tells the failure in a sentence, and where that file is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
LOG: Final = "spark.log"
CONFIGURATION: Final = "spark-log4j2.properties"
_OPTION: Final = "log4j2.configurationFile"

#: `gateway`: Spark takes it for a shell, and says so of a shell whose level is not the root's.
_TEXT: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = warn
"""


def log_to_file(
    directory: Path, configs: Mapping[str, str], defaults: Mapping[str, str]
) -> dict[str, str]:
    """The settings that send Spark's log to the directory, unless somebody has said otherwise.

    `configs` are the session's, `defaults` those of `spark-defaults.conf`. The file that has them
    for Spark is written.
    """
    options = configs.get(JAVA_OPTIONS, defaults.get(JAVA_OPTIONS, ""))
    if _OPTION in options:
        return {}
    place = directory.absolute()
    configuration = place / CONFIGURATION
    configuration.write_text(_TEXT.format(path=_escaped(place / LOG)), encoding="utf-8")
    return {JAVA_OPTIONS: f'{options} "-D{_OPTION}={configuration}"'.strip()}


def _escaped(path: Path) -> str:
    """As a value of Java's properties, where log4j looks for `${...}` besides."""
    return str(path).replace("\\", "\\\\").replace("$", "$$")
