"""Where a producer's core runs: on a thread, or behind a spool; and how it ends."""
