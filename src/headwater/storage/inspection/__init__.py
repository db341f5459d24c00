"""Looking into log files without changing them: `headwater log dump` and `headwater log verify`."""
