-- Acts with the address of the administrator, the machine that makes a clip, and the last check of the stored files.

alter table {{prefix}}audit_entries add column address text;

-- Machine whose worker began the last attempt.
alter table {{prefix}}sources add column worker text;

create table {{prefix}}storage_checks (
  id uuid primary key,
  -- Account of the machine for a command; null for a check that an administrator began.
  operator text,
  begun_at timestamptz not null,
  finished_at timestamptz,
  -- Machine that checks.
  worker text,
  -- Counts and the first findings; null while the check runs, and for one that failed.
  result jsonb,
  -- Reason of a check that failed.
  error text
);

-- One at a time in all processes.
create unique index {{prefix}}storage_checks_running_idx on {{prefix}}storage_checks ((true)) where finished_at is null;

-- Files by kind, as they were counted last; a small installation is counted at each request.
create table {{prefix}}storage_counts (
  kind text primary key,
  files bigint not null,
  bytes bigint not null,
  counted_at timestamptz not null
);
