"""Whether a lake is what its manifests say, and what the topics hold."""
