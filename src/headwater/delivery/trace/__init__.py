"""The story of one message: where it was and when, what it waited for, how exactly it is known."""
