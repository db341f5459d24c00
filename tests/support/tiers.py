"""Which tier of tests this run is: "small" unless HEADWATER_TEST_TIER says "quick" or "full"."""

import os


def tier() -> str:
    return os.environ.get("HEADWATER_TEST_TIER", "small")


def quick_tier() -> bool:
    """Whether only tests that need nothing from outside are wanted: see `quick_tier`."""
    return tier() == "quick"


def full_tier() -> bool:
    """Whether all rounds and matrices are wanted."""
    return tier() == "full"


def rounds(small: int, full: int) -> int:
    """How often to repeat something, by tier."""
    return full if full_tier() else small
