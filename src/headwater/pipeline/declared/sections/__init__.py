"""The sections of a pipeline's file: read, checked, made into specs."""
