-- The last failures of hooks, of all replicas: a few rows for each point. Written while a hook fails, and then seldom.
create table {{prefix}}hook_failures (
  id uuid primary key,
  point text not null,
  -- Code of the error, and its cause: in words, or the SQLSTATE of a function.
  result text not null,
  reason text not null,
  -- Id of the question.
  question_id text not null,
  -- Failures in this process since the row before.
  failures integer not null,
  failed_at timestamptz not null
);
