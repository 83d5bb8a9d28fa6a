"""The index: which file group holds a record key."""
