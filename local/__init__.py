"""The local stack: embedded PostgreSQL, the local AWS endpoint, a demo tenant and a receiver."""
