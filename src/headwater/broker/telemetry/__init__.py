"""Metrics that clients push (KIP-714): who is asked for what, what comes, and where it goes."""
