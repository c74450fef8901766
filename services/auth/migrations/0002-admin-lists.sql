-- GET /admin/users lists one audience by time of creation: a page's ids and the count come from this index alone.
-- It serves everything the former index on (created_at desc, id) did, which no query of version 0.1.0 used.

create index {{prefix}}users_aud_created_at_idx on {{prefix}}users (aud, created_at, id);
drop index {{prefix}}users_created_at_idx;
