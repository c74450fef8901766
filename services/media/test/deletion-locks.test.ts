// A deletion meets the worker that finishes the clip's source, and whose film is shorter than the source said. Both
// lock the source before the row of the search.
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { softDeleteExpired } from '../src/core/lifecycle/delete-clip.ts'
import { findSource, markReady } from '../src/core/sources/sources.store.ts'
import { gif } from './gif-bytes.ts'
import { formOf, idIn, startTestService, type TestService } from './service.ts'

let service: TestService
let admin: string
beforeAll(async () => {
  service = await startTestService({
    ...{ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0', MEDIA_UPLOAD_AUTH: 'optional' },
  })
  admin = (await service.newToken({ scopes: ['admin'] })).token
})
afterAll(() => service.close())

const decide = (id: string, action: string) =>
  service.call('POST', `/media/${id}/moderation`, {
    body: JSON.stringify({ action }),
    headers: { token: admin, 'content-type': 'application/json' },
  })

const deletions: Record<string, { token?: boolean; remove: (id: string) => Promise<unknown> }> = {
  'by its owner': { remove: (id) => service.call('DELETE', `/media/${id}`, { headers: { token: service.token } }) },
  'by a moderator': { remove: (id) => decide(id, 'delete') },
  'with its bytes': { remove: (id) => decide(id, 'block') },
  'after its lifetime': { token: false, remove: (id) => softDeleteExpired(service.deps, [id]) },
}

let widths = 20

test.for(Object.keys(deletions))('a clip is deleted %s while its source becomes ready', async (name) => {
  const { token = true, remove } = deletions[name] as (typeof deletions)[string]
  const { db, pool, now } = service.deps
  const headers = token ? { token: service.token } : {}
  const body = await formOf(gif(widths++, 10, [{ delay: 10 }, { delay: 10, color: 1 }]))
  const id = idIn(await service.call('POST', '/media/upload', { body, headers }))
  const { rows } = await pool.query('select source_id from clips where id = $1', [id])
  const source = await findSource(db, rows[0].source_id)
  if (!source) throw new Error('the clip has no source')
  service.clock.advance({ seconds: 400 * 86_400 })
  const deleted = await db.transaction().execute(async (trx) => {
    await trx.selectFrom('sources').select('id').where('id', '=', source.id).forUpdate().execute()
    const deletion = remove(id)
    await expect.poll(() => countLockWaits(pool)).toBe(1)
    const info = { ...source.info, durationSeconds: 0.1 }
    const facts = { id: source.id, hasAudio: false, placeholder: Buffer.alloc(5), info }
    expect(await markReady(trx, { ...facts, now: now() })).toBe(true)
    return { deletion }
  })
  await deleted.deletion
  expect((await service.get(`/gif/${id}`)).status).toBe(410)
  expect((await pool.query('select from clip_search where clip_id = $1', [id])).rowCount).toBe(0)
})
