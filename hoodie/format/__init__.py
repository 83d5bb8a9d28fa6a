"""Bytes <-> values of every file kind; opens no file and knows no table."""
