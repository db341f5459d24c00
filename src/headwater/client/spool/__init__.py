"""A local log in front of a producer, so that a crash loses nothing that `send` has taken."""
