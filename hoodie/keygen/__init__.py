"""Rows -> record keys and partition paths, as the strings that Apache Hudi makes; opens no file."""
