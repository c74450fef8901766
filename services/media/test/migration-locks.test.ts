import { fileURLToPath } from 'node:url'
import { longLocks } from '@services/common/testing/database/migration-locks'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import { expect, inject, test } from 'vitest'

test('no migration keeps requests waiting for as long as a table is large', async () => {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_empty`, async () => {})
  const found = await longLocks({
    url: database.url,
    folder: fileURLToPath(new URL('../migrations', import.meta.url)),
    // The files up to here create the tables.
    from: '0008-moderation',
    fill: `
      insert into sources (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, created_at)
        select md5(n::text)::uuid, sha256(n::text::bytea), 1, 'ready', 1, '{}', false, 1, now()
        from generate_series(1, 1500) n;
      insert into clips (id, source_id, tags, tag_keys, source_kind, created_at)
        select substr(md5(n::text), 1, 8), md5(n::text)::uuid, tags, tags, 'upload', now()
        from generate_series(1, 1500) n,
          lateral (select array_remove(array[case when n % 2 = 0 then 'shared' end, case when n % 3 = 0 then 'rare ' || n end],
            null) as tags) made;
      insert into blobs (sha256, extension, bytes, reference_count) select sha256, 'mp4', 1, 1 from sources;
      insert into renditions (source_id, kind, sha256, bytes, width, height)
        select id, 'mp4', sha256, 1, 1, 1 from sources;`,
  })
  expect(found).toEqual([])
  await database.drop()
})
