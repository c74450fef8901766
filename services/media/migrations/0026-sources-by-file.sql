-- alone
-- A decision that blocks a file finds its edited sources.
create index concurrently if not exists {{prefix}}sources_file_sha256_idx
  on {{prefix}}sources (file_sha256) where file_sha256 is not null;
