"""The way to a Hive metastore: its interface, and connections to it. Locks and registration go by it."""
