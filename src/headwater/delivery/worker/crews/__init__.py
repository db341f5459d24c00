"""Who runs handlers: the thread or task that polls, or several."""
