"""How commands print: tables, JSON, pipes that end early."""
