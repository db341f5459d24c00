"""What clients did and were told, and the checks of it."""
