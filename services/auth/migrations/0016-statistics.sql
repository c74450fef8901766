-- Numbers of the console (core/statistics). Rows of hours become rows of their day two days later.

create table {{prefix}}hourly_counts (
  hour timestamptz not null,
  event text not null check (event in ('sign_up', 'sign_in', 'message', 'queue', 'client')),
  method text not null,
  result text not null,
  -- Process that counted: its number for the hour so far, so that a repeated write changes nothing.
  process uuid not null,
  count bigint not null,
  primary key (hour, event, method, result, process)
);

-- Days are those of UTC.
create table {{prefix}}daily_counts (
  day date not null,
  event text not null check (event in ('sign_up', 'sign_in', 'message', 'queue', 'client')),
  method text not null,
  result text not null,
  count bigint not null,
  primary key (day, event, method, result)
);
