"""The follower's part: fetching from leaders, and truncating where they differ."""
