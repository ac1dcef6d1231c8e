alter table calendar
-- When no schedule used it any more: no tick moves it, and its key is given up, so that the next who means the same makes a
-- new row.
add retired_at instant,
add constraint calendar_retired check (retired_at is null or (next_fire_at is null and exclusion_key = 'retired ' || id));
