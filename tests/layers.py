"""The levels of the rooms, as ARCHITECTURE.md shows them."""

# From the bottom to the top. A room may import rooms of lower rows and itself; rooms of one row are siblings.
LAYERS = (
    ("errors",),
    ("model",),
    ("format",),
    ("options", "hashes", "telemetry"),
    ("storage", "engine", "keygen", "metastore", "aws"),
    ("publish", "hfile"),
    ("timeline", "lock", "filegroup"),
    ("view",),
    ("metadata",),
    ("index", "page"),
    ("txn",),
    ("read", "write", "timeline_server", "hive", "kv"),
    ("undo", "mirrors"),
    ("services",),
    ("repair", "writer"),
    ("maintenance", "consumers", "dml", "keyed", "verbs"),
    ("statements",),
    ("table",),
    ("query", "ingestion", "migration"),
    ("public",),
    ("hoodie",),  # hoodie/__init__.py, which hands the public names on
    ("cli",),
    ("__main__",),
)
