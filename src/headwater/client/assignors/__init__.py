"""Strategies by which the leader of a group shares out partitions among its members."""
