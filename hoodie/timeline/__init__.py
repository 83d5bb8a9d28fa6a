"""The timeline: instants under `.hoodie/`, their states and payloads."""
