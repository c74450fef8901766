-- alone
-- Housekeeping deletes tombstones by age.
create index concurrently if not exists {{prefix}}clips_deleted_at_idx
  on {{prefix}}clips (deleted_at) where deleted_at is not null;
