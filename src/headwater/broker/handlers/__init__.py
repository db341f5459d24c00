"""One module an API: the versions served, the handler, and its entry for the table."""
