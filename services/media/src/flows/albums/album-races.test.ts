// Albums that change while their clips are deleted. Each test holds one side where it has its locks.
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import type { Transaction } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { softDeleteClipRow } from '../../core/lifecycle/delete-clip.store.ts'
import type { DB } from '../../db/tables.ts'
import { addClips } from '../clips/testing/many-clips.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => service.close())

const send = (method: string, path: string, body?: unknown) =>
  service.call(method, path, {
    headers: { token: service.token, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

async function albumOf(ids: readonly string[]): Promise<string> {
  const { body } = await send('POST', '/albums', { title: 'Trip' })
  await send('PUT', `/albums/${body.success.id}/items`, { ids })
  return body.success.id
}

const softDelete = (trx: Transaction<DB>, id: string) => softDeleteClipRow(trx, id, service.deps.now())

test('a clip whose deletion commits while an album changes does not return to it', async () => {
  const [deleted = '', kept = '', added = ''] = await addClips(service, 3)
  const album = await albumOf([deleted, kept])
  const { change } = await service.deps.db.transaction().execute(async (trx) => {
    await softDelete(trx, deleted)
    const change = send('POST', `/albums/${album}/items`, { ids: [added], before: deleted })
    await expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
    return { change }
  })
  expect((await change).status).toBeLessThan(500)
  const { rows } = await service.deps.pool.query('select from album_items where clip_id = $1', [deleted])
  expect(rows).toEqual([])
})

test.for([
  ['is deleted', (album: string) => send('DELETE', `/albums/${album}`)],
  ['is emptied', (album: string) => send('PUT', `/albums/${album}/items`, { ids: [] })],
] as const)('an album that %s waits for the deletion of its clips, and not in a circle', async ([, act]) => {
  // The order in which deletions lock; the album has them the other way round.
  const ids = (await addClips(service, 2)).sort()
  const album = await albumOf(ids.toReversed())
  const { change } = await service.deps.db.transaction().execute(async (trx) => {
    await softDelete(trx, ids[0] ?? '')
    const change = act(album)
    await expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
    await softDelete(trx, ids[1] ?? '')
    return { change }
  })
  expect((await change).status).toBeLessThan(300)
})
