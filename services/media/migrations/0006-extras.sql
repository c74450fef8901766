-- What is made beside the four files: a picture of 25 bytes until the poster is there (thumbhash), and in the background
-- an AV1 copy and a WebP poster.
alter table {{prefix}}sources add column placeholder bytea check (octet_length(placeholder) between 5 and 64);
alter table {{prefix}}sources add column extras text[] not null default '{}' check (extras <@ array['av1', 'webp']);

-- In two statements, and yet in the one transaction of all pending migrations: the table is locked until it is committed, the
-- look at the rows of before included. That is a second for some millions of them.
alter table {{prefix}}renditions
  drop constraint {{prefix}}renditions_kind_check,
  add constraint {{prefix}}renditions_kind_check check (kind in ('gif', 'jpg', 'mp4', 'webm', 'av1', 'webp')) not valid;
alter table {{prefix}}renditions validate constraint {{prefix}}renditions_kind_check;
