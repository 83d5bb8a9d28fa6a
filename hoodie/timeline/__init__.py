"""The timeline: instants under `.hoodie/`, their states and payloads, and the table's properties."""
