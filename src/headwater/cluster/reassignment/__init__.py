"""Partitions that move to other brokers: what may be asked for, and the steps on the way."""
