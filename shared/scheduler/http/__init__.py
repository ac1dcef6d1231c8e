"""The outbound HTTP client; the only room that imports requests."""
