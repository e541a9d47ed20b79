"""Histories for people and machines."""
