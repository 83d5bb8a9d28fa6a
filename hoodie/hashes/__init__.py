"""Hashes over Arrow columns: those of the formats, and one of our own."""
