"""A real Spark for tests, and the programs, pipelines and lakes around it."""
