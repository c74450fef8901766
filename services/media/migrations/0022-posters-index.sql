-- alone
-- Posters that are being made, oldest first: housekeeping finds lost ones.

create index concurrently if not exists {{prefix}}clips_poster_making_idx
  on {{prefix}}clips (poster_requested_at) where poster_state = 'making';

alter table {{prefix}}clips validate constraint poster_state_known;
