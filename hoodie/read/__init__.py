"""The read path: plan, prune, execute."""
