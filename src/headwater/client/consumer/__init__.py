"""The consumer: what is read, from where, as a member of which group."""
