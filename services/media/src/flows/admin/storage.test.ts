// GET /storage and its check: exact for a small installation, counted by housekeeping for a large one.
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { startTestService, type TestService } from '../../../test/service.ts'
import { countStorage, readStorage } from '../../core/administration/storage.ts'
import { STORAGE_QUEUE } from '../../core/administration/storage-queue.ts'

async function started(settings: Record<string, string> = {}) {
  const service = await startTestService(settings)
  const admin = await service.newToken({ scopes: ['admin'] })
  return { service, admin, ...callsOf(service, admin.token) }
}

const callsOf = (service: TestService, token: string) => ({
  read: async () => (await service.get('/storage', { token })).body.success,
  check: () => service.call('POST', '/storage/check', { headers: { token } }),
})

test('files and bytes are those of the table, by kind', async () => {
  const { service, read } = await started()
  await service.readyAlike(gif(20, 12, [{ delay: 10 }]))
  await service.readyAlike(gif(21, 12, [{ delay: 10 }]))
  const { rows } = await service.deps.pool.query(
    `select extension as kind, count(*)::int as files, sum(bytes)::int as bytes from blobs group by 1 order by 1`,
  )
  const { kinds, files, bytes, counted_at, check } = await read()
  expect(kinds).toEqual(rows)
  expect(rows.length).toBeGreaterThan(3)
  const sum = (of: 'files' | 'bytes') => rows.reduce((all, row) => all + row[of], 0)
  expect([files, bytes, check]).toEqual([sum('files'), sum('bytes'), null])
  expect(counted_at).toBe(service.clock.now().toISOString())
  await service.close()
})

test('more files than a request counts are counted by housekeeping, page by page and once an hour', async () => {
  const { service } = await started({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps, clock } = service
  const hash = (n: number) => createHash('sha256').update(`${n}`).digest()
  for (let n = 0; n < 7; n++) {
    await deps.pool.query('insert into blobs (sha256, extension, bytes, reference_count) values ($1, $2, $3, 1)', [
      hash(n),
      n % 2 ? 'mp4' : 'gif',
      n,
    ])
  }
  const count = async () => {
    for await (const _ of countStorage(deps, 2));
  }
  expect(await readStorage(deps, 5)).toMatchObject({ kinds: [], counted_at: null })
  await count()
  const counted = clock.now()
  const kinds = [
    { kind: 'gif', files: 4, bytes: 12 },
    { kind: 'mp4', files: 3, bytes: 9 },
  ]
  expect(await readStorage(deps, 5)).toMatchObject({ kinds, files: 7, bytes: 21, counted_at: counted })
  expect((await readStorage(deps, 8)).kinds).toEqual(kinds)
  await deps.pool.query('delete from blobs where bytes > 1')
  clock.advance({ seconds: 3_599 })
  await count()
  expect((await readStorage(deps, 2)).counted_at).toEqual(counted)
  clock.advance({ seconds: 2 })
  await count()
  expect(await readStorage(deps, 2)).toMatchObject({ files: 2, counted_at: clock.now() })
  await service.close()
})

describe('a check', () => {
  test('runs in the background, repairs nothing, and its result is shown with the act of the admin', async () => {
    const { service, admin, read, check } = await started()
    await service.readyAlike(gif(22, 12, [{ delay: 10 }]))
    const [file = ''] = (await service.listFiles()).filter((path) => !path.startsWith('work/'))
    await rm(join(service.blobsDir, file))
    const begun = await check()
    expect([begun.status, begun.body.success]).toEqual([
      202,
      expect.objectContaining({ id: expect.any(String), operator: null, error: null }),
    ])
    await expect.poll(async () => (await read()).check.state).toBe('finished')
    const { check: shown, files } = await read()
    expect(shown).toMatchObject({
      ...{ id: begun.body.success.id, machine: expect.any(String) },
      result: { files: files - 1, rows: files, found: { row_without_blob: 1 } },
    })
    expect(shown.result.findings).toMatchObject([{ kind: 'row_without_blob', fixed: false }])
    const { rows } = await service.deps.pool.query('select action, token_id from audit_entries')
    expect(rows).toEqual([{ action: 'storage_check_begun', token_id: admin.id }])
    const again = await check()
    expect(again.body.success.id).not.toBe(shown.id)
    await expect.poll(async () => (await read()).check.state).toBe('finished')
    const { rows: kept } = await service.deps.pool.query('select id from storage_checks')
    expect(kept).toEqual([{ id: again.body.success.id }])
    await service.close()
  })

  test('is one at a time: requests at once get the same one, and one act is recorded', async () => {
    const { service, check } = await started({ MEDIA_WORKERS_ENABLED: 'false' })
    const answers = await Promise.all([check(), check(), check()])
    expect(new Set(answers.map(({ body }) => body.success.id)).size).toBe(1)
    expect(await service.deps.queue.depth(STORAGE_QUEUE.name)).toBe(1)
    const { rows } = await service.deps.pool.query('select action from audit_entries')
    expect(rows).toHaveLength(1)
    await service.close()
  })

  test('whose job was lost has failed, and the next one takes its place', async () => {
    const { service, read, check } = await started({ MEDIA_WORKERS_ENABLED: 'false' })
    const { id } = (await check()).body.success
    expect((await read()).check.state).toBe('running')
    await service.deps.pool.query('delete from media_queue.job')
    expect((await read()).check).toMatchObject({ id, state: 'failed', error: 'no worker survived it' })
    const next = (await check()).body.success
    expect(next).toMatchObject({ state: 'running', error: null })
    expect(next.id).not.toBe(id)
    await service.close()
  })

  test('needs the scope admin, as the numbers do', async () => {
    const { service } = await started({ MEDIA_WORKERS_ENABLED: 'false' })
    const { token } = service
    const calls = [service.get('/storage', { token }), service.call('POST', '/storage/check', { headers: { token } })]
    for (const { status, body } of await Promise.all(calls)) {
      expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
    }
    await service.close()
  })
})
