"""The fields of a pipeline's file, one row each, and the kinds of their values."""
