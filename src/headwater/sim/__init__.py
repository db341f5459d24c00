"""Deterministic simulation: real code on a simulated world, replayed by one seed.

Nothing outside tests and tools imports this package; it may import everything.

- `faulty_disk`: a file system in memory that forgets and tears what was not made durable.
  `file_node` is what it knows of one file, `directory_tree` of the names, `faulty_file` what it
  gives out, and `disk_faults` are the errors and power cuts that a test asks of it.
"""
