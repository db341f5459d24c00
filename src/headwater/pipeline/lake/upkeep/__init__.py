"""Compaction and vacuum."""
