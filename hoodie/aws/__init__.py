"""The way to services of AWS beside its object store."""
