-- Visibility and lifetime that the owner of a clip chooses, and what a moderator decides. An older version that still runs shows
-- such a clip as if it were public; it deletes no expired clip of a token.
alter table {{prefix}}clips
  add column visibility text not null default 'public',
  -- Seconds by which a visit extends the lifetime; null where visits do not.
  add column sliding_seconds integer,
  -- Random; the key of timed links to a private clip. Null until the first one. Replacing it ends all links.
  add column link_salt bytea,
  add column hidden_at timestamptz,
  add column hidden_reason text;
-- Not validated, because that would read the whole table; the rows before have the default.
alter table {{prefix}}clips add constraint {{prefix}}clips_visibility_known
  check (visibility in ('public', 'unlisted', 'private')) not valid;
