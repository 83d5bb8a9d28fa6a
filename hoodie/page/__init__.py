"""The table as a page for people: facts of it, and how they look. The command writes it as a file, the timeline server shows it."""
