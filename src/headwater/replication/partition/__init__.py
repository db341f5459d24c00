"""One partition as this broker sees it, and all of them."""
