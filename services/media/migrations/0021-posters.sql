-- Posters that owners chose. The picture is a variant of the source, which clips that share it share; which one a clip
-- shows is its own.

alter table {{prefix}}clips
  -- Second of the clip, and name of its variant; null for the poster of the source.
  add column poster_at double precision,
  add column poster_name text,
  add column poster_placeholder bytea,
  -- Number and time of changes: addresses name it, so that caches keep each picture.
  add column poster_number integer not null default 0,
  add column poster_changed_at timestamptz,
  -- The last change that was asked for, until it is made; `failed` stays until the next.
  add column poster_request uuid,
  add column poster_wanted double precision,
  add column poster_state text,
  add column poster_requested_at timestamptz,
  add constraint poster_state_known check (poster_state in ('making', 'failed')) not valid;

create trigger {{prefix}}clip_poster_noted after update of poster_number, poster_state, poster_request on {{prefix}}clips
  for each row when (new.deleted_at is null and (old.poster_number, old.poster_state, old.poster_request) is distinct from
    (new.poster_number, new.poster_state, new.poster_request))
  execute function {{prefix}}note_clip();
