"""Bytes to values and back, without sockets, files or clocks."""
