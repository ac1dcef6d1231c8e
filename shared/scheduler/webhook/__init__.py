"""Pure parts of a delivery: target policy, request, signature, retry policy."""
