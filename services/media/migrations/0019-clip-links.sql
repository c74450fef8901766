-- Links to private clips that have not expired, for their owners. A row is no secret: the address is signed anew from
-- the clip's salt and the expiry, which are all that a link consists of.

create table {{prefix}}clip_links (
  clip_id text collate "C" not null references {{prefix}}clips (id) on delete cascade,
  -- Whole seconds; two links of one clip and second are one.
  expires_at timestamptz not null,
  created_at timestamptz not null,
  primary key (clip_id, expires_at)
);

create index {{prefix}}clip_links_expires_at_idx on {{prefix}}clip_links (expires_at);
