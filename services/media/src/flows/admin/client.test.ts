import { expect } from 'vitest'
import { createMediaClient } from '../../../../../packages/media-client/src/media-client.ts'
import { test } from '../../../test/service.ts'

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

test('the client calls all endpoints of administrators', async ({ service }) => {
  const { token, id } = await service.newToken({ scopes: ['admin'] })
  const { admin } = createMediaClient({ baseUrl: service.url, token })
  const dead = async () =>
    (
      await service.deps.pool.query(
        `insert into media_queue.job (name, source_name, data, source_retry_count)
          values ('extras.dead', 'extras', '{}', 2) returning id`,
      )
    ).rows[0].id
  const [one, two] = [await dead(), await dead()]
  expect((await admin.queue()).queues[0]).toEqual({ name: 'transcode', waiting: 0 })
  expect((await all(admin.deadLetters())).map((letter) => letter.id).sort()).toEqual([one, two].sort())
  await admin.retryDeadLetter(one)
  await admin.deleteDeadLetter(two)
  await expect(admin.deleteDeadLetter(two)).rejects.toMatchObject({ code: 'not_found' })
  const check = await admin.checkStorage()
  expect((await admin.storage()).check?.id).toBe(check.id)
  expect((await admin.settings()).settings.find(({ name }) => name === 'MEDIA_DATABASE_URL')?.value).toBeNull()
  const acts = await all(admin.audit({ token: id }))
  expect(acts.map(({ action }) => action).sort()).toEqual([
    ...['dead_letter_deleted', 'dead_letter_retried', 'storage_check_begun'],
  ])
  expect(await all(admin.audit({ action: 'token_created' }))).toEqual([])
  await service.deps.pool.query("insert into token_days values ($1, '2026-10-01', 2, 1, 9)", [id])
  const usage = await admin.tokenUsage(id, { from: '2026-10-01', to: '2026-10-02' })
  expect(usage).toEqual([{ day: '2026-10-01', requests: 2, clips: 1, bytes: 9 }])
  expect(await admin.tokenSessions(id)).toEqual([])
  expect(await admin.endTokenSessions(id)).toBe(0)
})
