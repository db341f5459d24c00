"""Programs written in Java, which Headwater runs beside itself: found, fetched, started, ended.

Two of them use it: ZooKeeper, which a cluster is coordinated by, and Apache Kafka, which tests and
benches compare with.

- `installation` finds Java and makes the command line.
- `release` fetches a pinned release through Maven into a cache that everybody shares.
- `class_archive` makes such programs start quickly.
- `processes` starts them so that none stays behind.
"""
