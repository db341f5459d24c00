"""A card for each API that is served: its versions, what each added, and the access it needs."""
