-- name: make_partitions
select make_partitions(cast(:first_day as date), cast(:last_day as date)) as made
