"""The store inside one process: a node tree, and a journal that remembers it."""
