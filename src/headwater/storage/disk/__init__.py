"""The seam to a disk, the real one, and the descriptors that are open on it."""
