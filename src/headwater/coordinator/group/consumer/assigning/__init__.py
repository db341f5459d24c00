"""What each member shall have, and the steps by which it gets there."""
