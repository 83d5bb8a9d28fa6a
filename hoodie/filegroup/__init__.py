"""One file slice, one task at a time: merge, read, write and compact it."""
