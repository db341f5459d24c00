"""What tests of message traces share."""
