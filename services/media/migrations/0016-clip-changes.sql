-- Changes of clips, for the event streams of all processes (src/flows/clips/live/changes.store.ts). Triggers write
-- them, so that no statement that changes a clip can forget it. Rows are added and never changed: no lock is taken.

create table {{prefix}}clip_changes (
  -- Its transaction. A reader knows by a snapshot which of them it has seen, whatever the order of their commits.
  xid xid8 not null default pg_current_xact_id(),
  token_id uuid,
  clip_id text collate "C" not null,
  kind text not null check (kind in ('created', 'processing', 'ready', 'failed', 'deleted', 'updated')),
  -- Time of the server, which housekeeping alone compares, with the same clock.
  changed_at timestamptz not null default clock_timestamp()
);

-- Readers of one token, by which no other's changes are passed; admins and the deletion of old rows.
create index {{prefix}}clip_changes_token_idx on {{prefix}}clip_changes (token_id, xid);
create index {{prefix}}clip_changes_xid_idx on {{prefix}}clip_changes (xid);

create function {{prefix}}note_clip() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    insert into {{prefix}}clip_changes (token_id, clip_id, kind) values (old.token_id, old.id, 'deleted');
  else
    insert into {{prefix}}clip_changes (token_id, clip_id, kind) values (new.token_id, new.id,
      case when tg_op = 'INSERT' then 'created' when new.deleted_at is null then 'updated' else 'deleted' end);
  end if;
  return null;
end $$;

create trigger {{prefix}}clip_noted after insert on {{prefix}}clips
  for each row execute function {{prefix}}note_clip();
create trigger {{prefix}}clip_change_noted
  after update of title, tags, nsfw, attribution, visibility, sliding_seconds, expires_at, hidden_at, deleted_at
  on {{prefix}}clips for each row
  -- A visit alone moves the end of a sliding lifetime: its owner changes nothing.
  when ((old.title, old.tags, old.nsfw, old.attribution, old.visibility, old.sliding_seconds, old.hidden_at,
      old.deleted_at, case when old.sliding_seconds is null then old.expires_at end) is distinct from
    (new.title, new.tags, new.nsfw, new.attribution, new.visibility, new.sliding_seconds, new.hidden_at,
      new.deleted_at, case when new.sliding_seconds is null then new.expires_at end))
  execute function {{prefix}}note_clip();
create trigger {{prefix}}clip_end_noted after delete on {{prefix}}clips
  for each row when (old.deleted_at is null) execute function {{prefix}}note_clip();

create function {{prefix}}note_source() returns trigger language plpgsql as $$
begin
  insert into {{prefix}}clip_changes (token_id, clip_id, kind)
    select token_id, id, case when new.state in ('ready', 'failed') and new.state = old.state then 'updated' else new.state end
      from {{prefix}}clips where source_id = new.id
        -- Progress alone is of no use where no owner follows it.
        and (token_id is not null or (old.state, old.has_first_files, old.extras) is distinct from
          (new.state, new.has_first_files, new.extras));
  return null;
end $$;

create trigger {{prefix}}source_change_noted
  after update of state, progress, has_first_files, extras on {{prefix}}sources for each row
  when ((old.state, old.progress, old.has_first_files, old.extras) is distinct from
    (new.state, new.progress, new.has_first_files, new.extras))
  execute function {{prefix}}note_source();
