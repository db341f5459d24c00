"""Values to columns and back: JSON, CSV, Avro."""
