// A decision about more clips than one statement can take; that of a scanner: scanner.test.ts. The others:
// moderation.test.ts.
import { expect, test } from 'vitest'
import { startTestService } from './service.ts'

test('block ends, records and announces 8,200 clips, more than one statement can insert', async () => {
  const idle = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { token } = await idle.newToken({ scopes: ['admin'] })
  const call = (path: string, caller: string, body: object) =>
    idle.call('POST', path, {
      body: JSON.stringify(body),
      headers: { token: caller, 'content-type': 'application/json' },
    })
  await call('/webhooks', idle.token, { url: 'http://127.0.0.1:9', events: ['media.deleted'] })
  // Without the triggers, which take most of the time.
  await idle.deps.pool.query(`
    set local session_replication_role = 'replica';
    insert into sources (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, created_at)
      values (md5('source')::uuid, sha256('source'), 1, 'ready', 1, '{}', false, 8200, now());
    insert into clips (id, token_id, source_id, source_kind, created_at)
      select lpad(n::text, 8, '0'), token_id, md5('source')::uuid, 'upload', now()
      from generate_series(1, 8200) n, webhooks;`)
  expect((await call('/media/00000001/moderation', token, { action: 'block' })).status).toBe(200)
  const { rows } = await idle.deps.pool.query(`
    select (select count(*)::int from clips where deleted_at is null) as left,
      (select count(distinct clip_id)::int from moderations) as recorded,
      (select count(*)::int from webhook_deliveries) as announced`)
  expect(rows).toEqual([{ left: 0, recorded: 8_200, announced: 8_200 }])
  await idle.close()
})
