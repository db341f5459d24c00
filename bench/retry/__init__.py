"""`make bench-retry`: what workers cost where nothing fails, and what failures cost them."""
