-- Storage that each token uses: its clips, their sources and files. An upload compares these sums with the token's
-- quota instead of adding up all clips. Triggers change them in the transaction that changes a clip or a source; `blobs
-- check` verifies them.
create table {{prefix}}token_storage (
  token_id uuid primary key references {{prefix}}api_tokens (id),
  clips bigint not null default 0,
  bytes bigint not null default 0,
  -- Most bytes of the files that are still being made; not in `bytes`.
  reserved_bytes bigint not null default 0
);

-- The triggers are deferred to the end of a transaction, which then holds the source's row, so no other one changes the
-- summands. They lock rows of several tokens in one order and after all other locks, so that two transactions never
-- wait for each other.
create function {{prefix}}count_clip() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    update {{prefix}}token_storage kept
      set clips = kept.clips - 1, bytes = kept.bytes - source.bytes - source.rendition_bytes,
        reserved_bytes = kept.reserved_bytes - case when source.state = 'processing' then source.reserved_bytes else 0 end
      from {{prefix}}sources source
      where kept.token_id = old.token_id and source.id = old.source_id and source.state <> 'failed';
  end if;
  if tg_op <> 'DELETE' then
    insert into {{prefix}}token_storage as kept (token_id, clips, bytes, reserved_bytes)
      select new.token_id, 1, source.bytes + source.rendition_bytes,
          case when source.state = 'processing' then source.reserved_bytes else 0 end
        from {{prefix}}sources source
        where new.token_id is not null and source.id = new.source_id and source.state <> 'failed'
      on conflict (token_id) do update set clips = kept.clips + 1, bytes = kept.bytes + excluded.bytes,
        reserved_bytes = kept.reserved_bytes + excluded.reserved_bytes;
  end if;
  return null;
end $$;

create function {{prefix}}count_source() returns trigger language plpgsql as $$
declare
  clips_change integer := (new.state <> 'failed')::integer - (old.state <> 'failed')::integer;
  bytes_change bigint := case when new.state <> 'failed' then new.bytes + new.rendition_bytes else 0 end
    - case when old.state <> 'failed' then old.bytes + old.rendition_bytes else 0 end;
  reserved_change bigint := case when new.state = 'processing' then new.reserved_bytes else 0 end
    - case when old.state = 'processing' then old.reserved_bytes else 0 end;
begin
  insert into {{prefix}}token_storage as kept (token_id, clips, bytes, reserved_bytes)
    select token_id, count(*) * clips_change, count(*) * bytes_change, count(*) * reserved_change from {{prefix}}clips
      where source_id = new.id and token_id is not null group by token_id order by token_id
    on conflict (token_id) do update set clips = kept.clips + excluded.clips, bytes = kept.bytes + excluded.bytes,
      reserved_bytes = kept.reserved_bytes + excluded.reserved_bytes;
  return null;
end $$;

create constraint trigger {{prefix}}clip_added after insert on {{prefix}}clips
  deferrable initially deferred for each row execute function {{prefix}}count_clip();
create constraint trigger {{prefix}}clip_moved after update of source_id, token_id on {{prefix}}clips
  deferrable initially deferred for each row
  when (old.source_id is distinct from new.source_id or old.token_id is distinct from new.token_id)
  execute function {{prefix}}count_clip();
create constraint trigger {{prefix}}clip_removed after delete on {{prefix}}clips
  deferrable initially deferred for each row execute function {{prefix}}count_clip();
create constraint trigger {{prefix}}source_changed after update of state, bytes, rendition_bytes on {{prefix}}sources
  deferrable initially deferred for each row
  when (old.bytes <> new.bytes or old.rendition_bytes <> new.rendition_bytes or old.state <> new.state)
  execute function {{prefix}}count_source();
