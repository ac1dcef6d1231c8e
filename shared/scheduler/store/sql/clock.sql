-- name: read
-- The only clock of the product: not now(), which stands still inside a transaction.
select clock_timestamp() as now
