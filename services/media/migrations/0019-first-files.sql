-- True from when poster and mp4 of a processing source are stored, for a caller who waits for them alone.
alter table {{prefix}}sources add column has_first_files boolean not null default false;
