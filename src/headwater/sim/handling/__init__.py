"""Programs that handle records by chance, what they wrote down, and what was promised of it."""
