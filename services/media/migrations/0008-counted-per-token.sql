-- What is counted for each token.

-- Whose a source is: of who brought its bytes first. Null: of a caller without a token. It stays when the clip is deleted,
-- because the work does. An older version that still runs leaves it out: its clips count as nobody's for as long as they wait.
alter table {{prefix}}sources add column token_id uuid references {{prefix}}api_tokens (id);

update {{prefix}}sources set token_id = first.token_id
  from (select distinct on (source_id) source_id, token_id from {{prefix}}clips order by source_id, created_at) first
  where first.source_id = id and state = 'processing';

-- What each token keeps, in the clips it has and their sources and files; so that nobody counts all of them for each new
-- one. Changed by the triggers below in the transaction that changes a clip or a source, by whatever version; looked after
-- by `blobs check`.
create table {{prefix}}token_storage (
  token_id uuid primary key references {{prefix}}api_tokens (id),
  clips bigint not null default 0,
  bytes bigint not null default 0
);

-- At the end of a transaction, when it holds the source's row: nobody changes what is added up here. Rows of several tokens
-- in one order, and after all other locks, so that two transactions never wait for each other.
create function {{prefix}}count_clip() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    update {{prefix}}token_storage kept
      set clips = kept.clips - 1, bytes = kept.bytes - source.bytes - source.rendition_bytes
      from {{prefix}}sources source
      where kept.token_id = old.token_id and source.id = old.source_id and source.state <> 'failed';
  end if;
  if tg_op <> 'DELETE' then
    insert into {{prefix}}token_storage as kept (token_id, clips, bytes)
      select new.token_id, 1, source.bytes + source.rendition_bytes from {{prefix}}sources source
        where new.token_id is not null and source.id = new.source_id and source.state <> 'failed'
      on conflict (token_id) do update set clips = kept.clips + 1, bytes = kept.bytes + excluded.bytes;
  end if;
  return null;
end $$;

create function {{prefix}}count_source() returns trigger language plpgsql as $$
declare
  clips_change integer := (new.state <> 'failed')::integer - (old.state <> 'failed')::integer;
  bytes_change bigint := case when new.state <> 'failed' then new.bytes + new.rendition_bytes else 0 end
    - case when old.state <> 'failed' then old.bytes + old.rendition_bytes else 0 end;
begin
  insert into {{prefix}}token_storage as kept (token_id, clips, bytes)
    select token_id, count(*) * clips_change, count(*) * bytes_change from {{prefix}}clips
      where source_id = new.id and token_id is not null group by token_id order by token_id
    on conflict (token_id) do update set clips = kept.clips + excluded.clips, bytes = kept.bytes + excluded.bytes;
  return null;
end $$;

-- From here to the end of the migration nobody writes clips or sources, so that the first sums are of the same moment.
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
  when (old.bytes <> new.bytes or old.rendition_bytes <> new.rendition_bytes
    or (old.state = 'failed') <> (new.state = 'failed'))
  execute function {{prefix}}count_source();

insert into {{prefix}}token_storage (token_id, clips, bytes)
  select clip.token_id, count(*), sum(source.bytes + source.rendition_bytes)
    from {{prefix}}clips clip join {{prefix}}sources source on source.id = clip.source_id
    where clip.token_id is not null and source.state <> 'failed' group by clip.token_id;

-- What waits for a place at a receiver, in its order.
create index {{prefix}}webhook_deliveries_due_idx on {{prefix}}webhook_deliveries (webhook_id, created_at, id)
  where state = 'pending';

-- By whom resumable uploads are counted: the token, or the address of a caller without one. An older version leaves it out.
alter table {{prefix}}resumable_uploads add column owner_key text;
update {{prefix}}resumable_uploads set owner_key = coalesce(token_id::text, 'all');
create index {{prefix}}resumable_uploads_owner_idx on {{prefix}}resumable_uploads (owner_key) where clip_id is null;
