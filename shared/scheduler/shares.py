"""A tenant's share of what all use, where a deployment does not say otherwise."""

# Runs of a tenant in the queue at once: its backlog waits in the table, where it stands in nobody's way.
TENANT_QUEUED = 100
# Deliveries of one tenant under way at once: a tenant whose receiver hangs blocks at most so many workers.
TENANT_CONCURRENCY = 10
