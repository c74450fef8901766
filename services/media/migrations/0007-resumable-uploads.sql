-- Uploads that come in pieces. Their bytes are files of the same name in the work directory. A finished one stays for
-- a while without its file, so that a client whose connection broke at the last byte learns what became of it.
create table {{prefix}}resumable_uploads (
  id text collate "C" primary key check (id ~ '^[0-9A-Za-z]{32}$'),
  token_id uuid references {{prefix}}api_tokens (id),
  bytes bigint check (bytes >= 0), -- null: not said yet
  metadata text not null, -- as it was sent: keys, and values in base64
  clip_id text,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create index {{prefix}}resumable_uploads_expires_at_idx on {{prefix}}resumable_uploads (expires_at);
create index {{prefix}}resumable_uploads_unfinished_idx on {{prefix}}resumable_uploads (token_id) where clip_id is null;
