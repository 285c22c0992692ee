"""Decisions as functions of plain values: no I/O, no clock, no randomness of their own."""
