"""`headwater audit canary`: records of its own, sent through every broker and read back."""
