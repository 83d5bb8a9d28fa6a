"""Table services: what keeps a table whole and fast besides its writers."""
