"""What a good placement is: hard goals, which a plan must meet, and soft ones, which it should."""
