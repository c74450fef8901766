-- The last count of encrypted rows by key, which one process makes for all. One row.
create table {{prefix}}sealed_row_counts (
  id boolean primary key default true check (id),
  -- null while the first count runs
  counts jsonb,
  claimed_at timestamptz not null
);
