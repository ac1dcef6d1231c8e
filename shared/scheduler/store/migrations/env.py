"""Alembic's entry: runs the revisions on the connection that the caller opened, inside the caller's transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], target_metadata=None)
context.run_migrations()
