"""The index of what waits in a partition: derived from its log, to know what is due next."""
