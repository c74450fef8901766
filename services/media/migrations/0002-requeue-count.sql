-- How often a source had lost its job and was queued again.
alter table {{prefix}}sources add column requeue_count integer not null default 0;
