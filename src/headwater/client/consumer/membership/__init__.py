"""A consumer as a member of a group, in both protocols."""
