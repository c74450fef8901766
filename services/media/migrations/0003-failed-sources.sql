-- Housekeeping looks for clips that failed long ago.
create index {{prefix}}sources_failed_idx on {{prefix}}sources (finished_at) where state = 'failed';
