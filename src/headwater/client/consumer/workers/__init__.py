"""Two ways to consume with several threads: a consumer each, or a pool of workers."""
