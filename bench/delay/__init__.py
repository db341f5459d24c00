"""`make bench-delay`: how late delayed messages are, and what they cost."""
