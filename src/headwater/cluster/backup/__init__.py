"""What a metadata store holds as a file: taken out, checked, and put into another store."""
