"""The delay service: records wait in level topics and are forwarded when their time has come."""
