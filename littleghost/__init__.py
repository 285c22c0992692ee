"""Agents that run as durable jobs inside real applications."""
