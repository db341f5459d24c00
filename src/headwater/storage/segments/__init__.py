"""Segments: files of record batches, their names, and how one follows another."""
