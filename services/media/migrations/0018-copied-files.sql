-- Files that have the source's own streams. An older version that still runs copies none.
alter table {{prefix}}renditions add column copied boolean not null default false;
