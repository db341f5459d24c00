"""Delayed delivery: what waits in a partition's log, and how it is handed over in time."""
