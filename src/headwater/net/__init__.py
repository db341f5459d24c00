"""The one place with sockets: listeners, connections, answers with file regions, peer channels."""
