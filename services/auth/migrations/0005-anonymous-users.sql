-- Housekeeping walks anonymous users by age. Neither column ever changes while the user is anonymous, so that sign-ins, which
-- write other columns, stay HOT; an index on the time of the last sign-in would be written by each of them.

create index {{prefix}}users_anonymous_idx on {{prefix}}users (created_at, id) where is_anonymous;
