"""Carillon's own package: the domain, its use cases and the adapters that the functions compose."""
