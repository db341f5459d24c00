"""`headwater trace`: the story of one message, and which messages were slow."""
