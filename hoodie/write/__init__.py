"""The write path: prepare, look up, plan, execute, seal."""
