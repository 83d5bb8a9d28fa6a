"""The key-value store beside RocksDB, LMDB, SQLite and SlateDB, and by the rows of HDHT's published table."""
