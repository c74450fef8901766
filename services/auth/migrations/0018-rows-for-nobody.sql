-- Rows written where there is no account to write to, so that time does not tell. The version before keeps its own among the gaps.
create table {{prefix}}nobodys_rows (
  key bytea primary key,
  written_at timestamptz not null
);

create index {{prefix}}nobodys_rows_written_at_idx on {{prefix}}nobodys_rows (written_at);
