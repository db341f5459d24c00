"""Topics and their settings, as requests describe and change them."""
