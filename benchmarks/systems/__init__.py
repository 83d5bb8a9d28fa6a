"""The systems that are measured, a file each, and the work that all of them are given."""
