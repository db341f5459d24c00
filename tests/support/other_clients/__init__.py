"""Other people's clients, and our own, as the conformance tests use them."""
