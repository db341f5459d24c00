"""Writers and readers at work while something happens to a cluster."""
