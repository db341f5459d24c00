"""Dead letters: what was given up leaves its partition for the topic of such messages."""
