"""Tasks that send letters back: what is wanted, how far they are, and where that is kept."""
