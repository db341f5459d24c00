"""Models that a part of the system is compared with at every step."""
