"""What happens before a broker serves: its number, its options, its way to the metadata store."""
