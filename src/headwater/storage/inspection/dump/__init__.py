"""What stands in log files: `headwater log dump`."""
