"""`headwater retry`: the topics of consumer groups for what they cannot handle."""
