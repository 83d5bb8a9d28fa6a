"""The write path: prepare, look up, plan, write, publish."""
