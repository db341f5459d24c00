"""What several test modules share: fakes, strategies and builders."""
