"""The `hoodie` command: what a table is, and the services that keep it in shape."""
