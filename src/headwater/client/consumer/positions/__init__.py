"""Where each partition is read from: resets, validation, questions to leaders."""
