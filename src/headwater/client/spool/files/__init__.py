"""A spool on disk: frames in segments, and how far it was shipped."""
