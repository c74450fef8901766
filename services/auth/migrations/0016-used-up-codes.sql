-- How many codes of this user and purpose died of wrong attempts since the last one that was used. The version before leaves it alone.
alter table {{prefix}}one_time_tokens
  add column used_up_codes smallint not null default 0;
