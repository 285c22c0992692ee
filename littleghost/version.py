"""The installed version."""

VERSION = "0.1.0"
