"""`make demo`: a broker, a shop's stream, three pipelines on Spark, and a check of every result."""
