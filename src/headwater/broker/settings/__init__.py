"""What a broker and its topics can be told: tables of rows by area, and the values that hold."""
