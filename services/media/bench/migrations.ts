// `node bench/migrations.ts`: the longest wait of a request during each pending migration. Loads BENCH_ROWS (1,000,000) clips,
// unless BENCH_DATABASE_URL names a copy of a database.
import { fileURLToPath } from 'node:url'
import { measureMigrations } from '@services/common/bench/migrations'
import { loadClips } from './load-clips.ts'

const ROWS = Number(process.env.BENCH_ROWS || 1_000_000)

const STATEMENTS = {
  page: `select clips.*, sources.*, renditions.* from clips join sources on sources.id = clips.source_id
    left join renditions on renditions.source_id = sources.id where clips.id = $1`,
  list: `select * from clips where token_id = (select token_id from clips where id = $1) and deleted_at is null
    order by created_at desc, id desc limit 50`,
  edit: `with made as (select array['edited', (random() * 10)::int::text] as tags)
    update clips set title = 'Edited', tags = made.tags, tag_keys = made.tags from made where id = $1`,
  upload: `with of_known as (select clips.token_id, info, gen_random_uuid() as new_id from clips join sources on sources.id = source_id
      where clips.id = $1),
    source as (insert into sources (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, token_id, created_at)
      select new_id, sha256(new_id::text::bytea), 1, 'processing', 1200000, info, true, 1, token_id, now() from of_known)
    insert into clips (id, token_id, source_id, tags, tag_keys, source_kind, created_at)
      select left(new_id::text, 8), token_id, new_id, '{Funny}', '{funny}', 'upload', now() from of_known on conflict do nothing`,
}

await measureMigrations({
  folder: fileURLToPath(new URL('../migrations', import.meta.url)),
  loadedAt: '0009-reserved-bytes',
  load: async (url) => void (await loadClips(url, ROWS, new Date(), { withListTables: false })),
  statements: STATEMENTS,
  ids: 'select id from clips where deleted_at is null limit 1000',
})
