"""One partition's log on disk, and a broker's log directories, in Kafka's own file format.

The parts, from the disk upwards:

- `files`: the one seam to the disk. All storage code reads and writes through it, so that a
  simulated disk can stand in for the real one; `disk_files` is the real one.
- `handles`: keeps the number of open descriptors bounded however many segments there are.
"""
