"""One module an API: the handler, bound to its card; versions and access are in `cards`."""
