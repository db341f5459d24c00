"""Each client as a member of a group."""
