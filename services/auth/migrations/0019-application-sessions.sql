-- alone
-- Rules and index of sessions of applications. No sign-in waits while they read the table.

-- if not exists (select from pg_constraint where conrelid = '{{prefix}}sessions'::regclass and conname = 'client_fkey')
alter table {{prefix}}sessions add constraint client_fkey
  foreign key (oauth_client_id) references {{prefix}}oauth_clients on delete cascade not valid;

alter table {{prefix}}sessions validate constraint client_fkey;

-- if not exists (select from pg_constraint where conrelid = '{{prefix}}sessions'::regclass and conname = 'grant_check')
alter table {{prefix}}sessions add constraint grant_check check (
  (oauth_client_id is null) = (scopes is null) and (oauth_client_id is null) = (resources is null)
) not valid;

alter table {{prefix}}sessions validate constraint grant_check;

create index concurrently if not exists {{prefix}}sessions_oauth_client_id_idx
  on {{prefix}}sessions (oauth_client_id) where oauth_client_id is not null;
