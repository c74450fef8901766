-- How many codes of this user and purpose died of wrong attempts, one after the other. The version before leaves it alone.
alter table {{prefix}}one_time_tokens
  add column used_up_codes smallint not null default 0;
