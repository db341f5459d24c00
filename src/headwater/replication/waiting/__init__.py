"""Requests that wait: the purgatory, and what ends each wait."""
