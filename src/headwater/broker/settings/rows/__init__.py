"""The settings of a broker, one row each, by area."""
