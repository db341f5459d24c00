"""What a checked file declares, as values."""
