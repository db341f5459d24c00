"""What a consumer reads, and the fetches that bring it."""
