"""One partition's log on disk, and a broker's log directories, in Kafka's own file format.

The parts, from the disk upwards:

- `disk`: the one seam to the disk. All storage code reads and writes through `disk.files`, so that
  a simulated disk can stand in for the real one, and `disk.handles` keeps the number of open
  descriptors bounded however many segments there are.
- `indexes` and `segments`: a segment is a file of record batches with its indexes.
- `producers`: what a partition remembers of who wrote to it; `leader_epochs`: of who led it.
- `partition_log`: all of it behind one append-only interface; `append`, `log_reads`,
  `visible_reads`, `flush`, `retention` and `truncation` are what can be done to it.
- `recovery` opens a log, `compaction` cleans it, `directories` keeps all of a broker's, and
  `inspection` looks into them from outside.
"""
