"""Each client's transactions."""
