-- Searches of housekeeping that read every old row, by kind. One process runs each for all.
create table {{prefix}}shared_runs (
  kind text primary key,
  -- Next run or, during one, the time from which another process takes it over.
  due_at timestamptz not null
);
