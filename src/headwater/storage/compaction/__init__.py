"""Log compaction: choosing a log, cleaning its segments in a child process, swapping them in."""
