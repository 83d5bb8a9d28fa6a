"""The read path: plan a query on a snapshot, then run it."""
