"""Measurements and soak runs: not part of the package, started from the project's directory."""
