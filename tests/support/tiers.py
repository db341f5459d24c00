"""Which tier of tests this run is: "small" unless HEADWATER_TEST_TIER says "full"."""

import os


def full_tier() -> bool:
    """Whether all rounds and matrices are wanted."""
    return os.environ.get("HEADWATER_TEST_TIER", "small") == "full"


def rounds(small: int, full: int) -> int:
    """How often to repeat something, by tier."""
    return full if full_tier() else small
