-- Decisions about clips, reports of visitors, and bytes that are refused.

create table {{prefix}}moderations (
  id uuid primary key,
  clip_id text not null references {{prefix}}clips (id) on delete cascade,
  action text not null,
  origin text not null check (origin in ('admin', 'cli', 'reports', 'scanner')),
  reason text,
  note text,
  token_id uuid,
  -- The account of the machine, for a command.
  operator text,
  created_at timestamptz not null
);

create index {{prefix}}moderations_clip_idx on {{prefix}}moderations (clip_id, created_at desc);

create table {{prefix}}reports (
  id uuid primary key,
  clip_id text not null references {{prefix}}clips (id) on delete cascade,
  reason text not null,
  text text,
  email text,
  -- HMAC of the address under the key of its month; null for an unknown address.
  reporter bytea,
  state text not null default 'open' check (state in ('open', 'closed')),
  moderation_id uuid references {{prefix}}moderations (id) on delete set null,
  created_at timestamptz not null
);

create unique index {{prefix}}reports_reporter_idx on {{prefix}}reports (clip_id, reporter);
create index {{prefix}}reports_open_idx on {{prefix}}reports (created_at desc, id desc) where state = 'open';
create index {{prefix}}reports_list_idx on {{prefix}}reports (created_at desc, id desc);
create index {{prefix}}reports_moderation_idx on {{prefix}}reports (moderation_id) where moderation_id is not null;

-- Keys of the HMACs above; one is deleted when its month has ended.
create table {{prefix}}report_keys (
  month text primary key,
  key bytea not null
);

-- Hashes of files that are refused.
create table {{prefix}}blocked_hashes (
  sha256 bytea primary key,
  -- The clip whose blocking refused them; it may be deleted since.
  clip_id text not null,
  created_at timestamptz not null
);

create index {{prefix}}blocked_hashes_clip_idx on {{prefix}}blocked_hashes (clip_id);
