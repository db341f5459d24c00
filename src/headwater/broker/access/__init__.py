"""Who may do what: brokers that prove to be such, and what others are allowed."""
