"""The partition log against bare system calls: `python -m bench.log`."""
