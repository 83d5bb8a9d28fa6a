"""Words of the format: immutable nouns, their names on storage, and the plans that cross rooms."""
