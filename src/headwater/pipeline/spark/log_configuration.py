"""What Spark's Java logs in a session that Headwater starts: errors, one line each, on stderr.

Spark reads a file of this form before anything else of it runs, so that also its first lines, which
no setting reaches, are not printed. `spark.log.level` changes the level afterwards.
"""

from pathlib import Path
from typing import Final

from headwater.java.cached_file import cached_file

FILE_NAME: Final = "spark-log4j2.properties"

#: `gateway`: Spark takes it for a shell, and a shell whose logger has no level is told about it.
#: `write`: a write that is given up is logged each time a query is stopped; why it was given up, if
#: there is a reason, is in the exception that the query ends with.
LOG_CONFIGURATION: Final = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
logger.write.name = org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec
logger.write.level = off
"""


def log_configuration_file() -> Path:
    """The file, which is written if it is not there yet, or is not this one."""
    return cached_file(FILE_NAME, LOG_CONFIGURATION)
