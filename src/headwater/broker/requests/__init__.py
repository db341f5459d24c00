"""From a connection to a handler: listeners, the table of APIs, dispatch, forwarding."""
