-- Files that are made of a source when their address is first requested: other sizes and formats, single frames, files up to a
-- number of bytes. They belong to the source, so clips that share it share them. `name` is the canonical form of the options.
-- An older version that still runs cannot delete a source that has some: it keeps it for a newer one.
create table {{prefix}}variants (
  source_id uuid not null references {{prefix}}sources (id),
  name text not null check (length(name) between 1 and 100),
  -- making: claimed by a request or a job. original: it would be no smaller than the clip's own file. refused: cannot_fit.
  state text not null check (state in ('making', 'stored', 'original', 'refused', 'failed')),
  extension text not null,
  sha256 bytea check (octet_length(sha256) = 32),
  -- Size of the stored file; of a refused one the fewest bytes that were reached.
  bytes bigint not null default 0,
  claimed_at timestamptz not null,
  used_at timestamptz not null,
  primary key (source_id, name),
  foreign key (sha256, extension) references {{prefix}}blobs (sha256, extension),
  check ((state = 'stored') = (sha256 is not null))
);

create index {{prefix}}variants_blob_idx on {{prefix}}variants (sha256, extension) where sha256 is not null;
create index {{prefix}}variants_used_at_idx on {{prefix}}variants (used_at);
create index {{prefix}}variants_claimed_at_idx on {{prefix}}variants (claimed_at) where state in ('making', 'failed');
