-- Albums: clips of one token, in an order of its owner.

create table {{prefix}}albums (
  id text collate "C" primary key check (id ~ '^[0-9A-Za-z]{8}$'),
  token_id uuid not null references {{prefix}}api_tokens (id),
  title text not null,
  description text,
  visibility text not null check (visibility in ('public', 'unlisted', 'private')),
  -- Random key of timed links to a private album; null until the first one. Replacing it ends all links.
  link_salt bytea,
  -- Rises with each change that its owner makes. A clip that is deleted leaves without one: that would need a lock of
  -- the album, in an order of its own.
  version bigint not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- Lists, newest first, of one token and of all.
create index {{prefix}}albums_of_token_idx on {{prefix}}albums (token_id, created_at desc, id desc);
create index {{prefix}}albums_newest_idx on {{prefix}}albums (created_at desc, id desc);

create table {{prefix}}album_items (
  album_id text collate "C" not null references {{prefix}}albums (id) on delete cascade,
  clip_id text collate "C" not null references {{prefix}}clips (id) on delete cascade,
  position integer not null,
  added_at timestamptz not null,
  primary key (album_id, clip_id)
);

create index {{prefix}}album_items_in_order_idx on {{prefix}}album_items (album_id, position, clip_id);
-- Albums of a clip.
create index {{prefix}}album_items_clip_id_idx on {{prefix}}album_items (clip_id);

-- A deleted clip leaves its albums. A trigger, so that no statement that deletes can forget it; the foreign key does
-- the same for clips without a tombstone.
create function {{prefix}}leave_albums() returns trigger language plpgsql as $$
begin
  delete from {{prefix}}album_items where clip_id = new.id;
  return null;
end $$;

create trigger {{prefix}}clip_leaves_albums after update of deleted_at on {{prefix}}clips
  for each row when (old.deleted_at is null and new.deleted_at is not null)
  execute function {{prefix}}leave_albums();

-- Few rows: ten for each token at most.
alter table {{prefix}}webhooks drop constraint {{prefix}}webhooks_events_check;
alter table {{prefix}}webhooks add constraint {{prefix}}webhooks_events_check
  check (events <@ array['media.ready', 'media.failed', 'media.deleted', 'media.reported', 'media.hidden',
    'media.unhidden', 'album.created', 'album.updated', 'album.deleted']);
