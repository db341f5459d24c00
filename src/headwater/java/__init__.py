"""Programs written in Java, which Headwater runs beside itself: found, fetched, started, ended.

ZooKeeper, which a cluster is coordinated by, Spark, which pipelines run on, and Apache Kafka, which
tests and benches compare with.

- `installation` finds Java and makes the command line.
- `runtime` finds a Java in more places, for programs that bring scripts of their own.
- `release` fetches a pinned release through Maven into a cache that everybody shares.
- `class_archive` makes such programs start quickly.
- `cached_file` keeps small files that are made from a text.
- `processes` starts them so that none stays behind.
"""
