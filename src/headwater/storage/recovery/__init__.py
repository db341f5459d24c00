"""Opening a log: after a clean stop, or after a crash."""
