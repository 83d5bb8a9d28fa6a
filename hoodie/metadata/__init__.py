"""The metadata table of Apache Hudi: partitions, files, bounds, bloom filters and places of keys, without a listing."""
