"""Who may write, and who still lives: the lock of a table and the marks of its writers."""
