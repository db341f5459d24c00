"""A broker's data directories: ownership, checkpoints, loading, creation, deletion, maintenance."""
