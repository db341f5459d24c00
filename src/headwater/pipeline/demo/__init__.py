"""`headwater demo`: a broker, a shop's stream, three pipelines on Spark, every result checked."""
