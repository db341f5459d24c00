"""Logs on disk for tests: varied, verified, dumped, moved, killed."""
