"""Spark's source and sink as stages of the message audit: what is counted, and where it is told."""
