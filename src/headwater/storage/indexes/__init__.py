"""The three indexes of a segment: offsets, timestamps, aborted transactions."""
