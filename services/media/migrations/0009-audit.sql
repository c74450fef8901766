-- Acts of admins on clips of other tokens and on tokens, and acts of commands.

create table {{prefix}}audit_entries (
  id uuid primary key,
  action text not null,
  -- Clip or token; null for the files of all.
  target text,
  origin text not null check (origin in ('admin', 'cli')),
  -- Token of the admin; kept when the token is gone.
  token_id uuid,
  -- Account of the machine, for a command.
  operator text,
  details jsonb not null default '{}',
  created_at timestamptz not null,
  check ((origin = 'admin') = (token_id is not null) and (origin = 'cli') = (operator is not null))
);

create index {{prefix}}audit_entries_created_idx on {{prefix}}audit_entries (created_at desc, id desc);
