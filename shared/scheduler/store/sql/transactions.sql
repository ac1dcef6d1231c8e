-- name: begin_part
savepoint part

-- name: end_part
release savepoint part

-- name: undo_part
rollback to savepoint part
