"""Programs that people run by hand while they work on Headwater."""
