"""`headwater audit`: what came in, what is stored and what groups have read, by time."""
