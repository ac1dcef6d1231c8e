"""PostgreSQL: connections and the named SQL blocks."""
