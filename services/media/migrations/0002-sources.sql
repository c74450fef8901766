-- Sources, and the stored files that are made of them.

-- Measurements of a file and the state of the work on it: one row per content, edit and pipeline, however often it is
-- uploaded.
create table {{prefix}}sources (
  id uuid primary key,
  -- Hash of the file, or key of file and edit, so that equal edits share a source.
  sha256 bytea not null check (octet_length(sha256) = 32),
  -- Hash of the file of an edited source; null without an edit.
  file_sha256 bytea,
  -- Token of the first upload of these bytes; null for a caller without one. It outlives the clip, as the work does.
  token_id uuid references {{prefix}}api_tokens (id),
  pipeline_version integer not null,
  state text not null check (state in ('processing', 'ready', 'failed')),
  error_code text check ((error_code is not null) = (state = 'failed')),
  error_details jsonb,
  progress real not null default 0 check (progress between 0 and 1),
  bytes bigint not null,
  -- Sum of its renditions.
  rendition_bytes bigint not null default 0,
  -- Most bytes that its files can take. While they are made, a quota counts them for each of the source's clips, so
  -- that clips that wait together cannot exceed it together.
  reserved_bytes bigint not null default 0,
  info jsonb not null,
  has_audio boolean not null,
  -- Thumbhash: a picture of 25 bytes until the poster is stored.
  placeholder bytea check (octet_length(placeholder) between 5 and 64),
  -- True from when poster and mp4 of a processing source are stored, for a caller who waits for them alone.
  has_first_files boolean not null default false,
  -- True while its files are stored but wait for the scanner; they are shown to no visitor.
  held boolean not null default false,
  -- Answer of the scanner, for later clips of the same bytes too; null without one.
  verdict text,
  -- Files that are made later in the background.
  extras text[] not null default '{}' check (extras <@ array['av1', 'webp']),
  clip_count integer not null check (clip_count >= 0),
  -- Number of times that its job was lost and queued again.
  requeue_count integer not null default 0,
  unreferenced_at timestamptz check (unreferenced_at is null or clip_count = 0),
  created_at timestamptz not null,
  finished_at timestamptz
);

-- A failed source does not prevent another attempt with the same bytes.
create unique index {{prefix}}sources_sha256_key
  on {{prefix}}sources (sha256, pipeline_version) where state <> 'failed';
-- A decision that blocks a file finds its edited sources.
create index {{prefix}}sources_file_sha256_idx on {{prefix}}sources (file_sha256) where file_sha256 is not null;
-- An upload counts the waiting clips, all and its token's, from this index alone.
create index {{prefix}}sources_waiting_idx on {{prefix}}sources (token_id) where state = 'processing';
-- Housekeeping deletes clips that failed long ago, and sources without clips.
create index {{prefix}}sources_failed_idx on {{prefix}}sources (finished_at) where state = 'failed';
create index {{prefix}}sources_unreferenced_at_idx
  on {{prefix}}sources (unreferenced_at) where unreferenced_at is not null;

-- Files in the blob store. A row exists before its file and until after it, so that no file is unknown.
create table {{prefix}}blobs (
  sha256 bytea not null check (octet_length(sha256) = 32),
  extension text not null,
  bytes bigint not null,
  reference_count integer not null default 0 check (reference_count >= 0),
  unreferenced_at timestamptz check ((unreferenced_at is not null) = (reference_count = 0)),
  -- Another value with each deletion of the file, so that a put from before does not count. No transaction is open
  -- while the storage deletes.
  generation uuid not null default gen_random_uuid(),
  -- Begin of a deletion that has not ended; null without one.
  deleting_since timestamptz,
  primary key (sha256, extension)
);

create index {{prefix}}blobs_unreferenced_at_idx on {{prefix}}blobs (unreferenced_at) where unreferenced_at is not null;

-- Files of each source: the four main ones, and the extras av1 and webp.
create table {{prefix}}renditions (
  source_id uuid not null references {{prefix}}sources (id),
  kind text not null check (kind in ('gif', 'jpg', 'mp4', 'webm', 'av1', 'webp')),
  sha256 bytea not null,
  bytes bigint not null,
  width integer not null,
  height integer not null,
  -- True for a file that has the source's own streams.
  copied boolean not null default false,
  primary key (source_id, kind),
  foreign key (sha256, kind) references {{prefix}}blobs (sha256, extension)
);

create index {{prefix}}renditions_blob_idx on {{prefix}}renditions (sha256, kind);

-- Files that are made when their address is first requested: other sizes and formats, single frames, files up to a
-- number of bytes. They belong to the source, so clips that share it share them. `name` is the canonical form of the
-- options.
create table {{prefix}}variants (
  source_id uuid not null references {{prefix}}sources (id),
  name text not null check (length(name) between 1 and 100),
  -- making: claimed by a request or a job. original: it would be no smaller than the clip's own file. refused:
  -- cannot_fit.
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
