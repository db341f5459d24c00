"""Where rows go: topics, tables, dead letters, the screen."""
