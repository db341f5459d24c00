"""Message trace: what clients tell of a record's way, in `__trace` and to OpenTelemetry."""
