"""Whether log files are sound: `headwater log verify`."""
