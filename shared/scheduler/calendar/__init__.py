"""Pure calendar arithmetic: an expression, a zone and a policy become instants."""
