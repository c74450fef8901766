import { createHash } from 'node:crypto'
import { mkdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'
import { cleanUp } from '../../housekeeping.ts'
import { type BlobName, blobFile, blobKey, LEFTOVER_AGE_MS, type StoredBlob } from '../../store/blobs/blob-storage.ts'
import { checkBlobs, type Finding } from './check-blobs.ts'

const later = { prefer: 'respond-async' }

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

const check = async (
  { inMinutes = 0, ...options }: { deep?: boolean; fix?: boolean; inMinutes?: number } = {},
  { deps } = service,
) => {
  const findings: Finding[] = []
  const report = (finding: Finding) => findings.push(finding)
  // Files carry the time of the machine, not that of the test's clock.
  const totals = await checkBlobs(
    { ...deps, now: () => minutesAgo(-inMinutes) },
    { deep: false, fix: false, ...options, report },
  )
  return { totals, findings }
}

const pathOf = (name: BlobName, { blobsDir } = service) => join(blobsDir, blobKey(name))

let number = 0
/** A ready clip, and one of its files. */
async function newClip() {
  const bytes = gif(50, 20 + ++number, [{ delay: 10 }])
  const id = idIn(await service.readyAlike(bytes))
  const { rows } = await service.deps.pool.query(
    `select encode(sha256, 'hex') as sha256 from renditions join clips using (source_id) where id = $1 and kind = 'mp4'`,
    [id],
  )
  const file: BlobName = { sha256: rows[0].sha256, extension: 'mp4' }
  return { bytes, id, file }
}

const allMade = () =>
  expect
    .poll(async () => (await service.deps.pool.query(`select from sources where state = 'processing'`)).rowCount)
    .toBe(0)

const stateOf = async (id: string) => (await service.get(`/media/${id}`, { token: service.token })).body.success
const keyOf = ({ sha256, extension }: BlobName) => [Buffer.from(sha256, 'hex'), extension]

const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)

async function leaveOrphan(content: string): Promise<BlobName> {
  const name = { sha256: createHash('sha256').update(content).digest('hex'), extension: 'webm' }
  await mkdir(dirname(pathOf(name)), { recursive: true })
  await writeFile(pathOf(name), content)
  return name
}

/** Cleans up twice: the first round deletes sources, the second their files. */
async function cleanUpTwice() {
  for (let round = 0; round < 2; round++) {
    service.clock.advance({ seconds: 601 })
    await cleanUp(service.deps)
  }
}

test('clips that were made, shared, deleted and cleaned up give no findings', async () => {
  await cleanUpTwice()
  const { totals: before } = await check()
  const [first, second] = [await newClip(), await newClip()]
  await service.upload(first.bytes)
  await service.call('DELETE', `/media/${second.id}`, { headers: { token: service.token } })
  expect((await check({ deep: true })).findings).toEqual([])
  await cleanUpTwice()
  const { totals, findings } = await check({ deep: true, fix: true })
  expect(findings).toEqual([])
  expect(totals).toEqual({ files: before.files + 4, rows: before.rows + 4, bytes: expect.any(Number) })
  expect((await stateOf(first.id)).state).toBe('ready')
})

describe('a damaged file:', () => {
  test.each<{ what: string; kind: Finding['kind']; deep?: boolean; damage: (path: string) => Promise<void> }>([
    { what: 'lost', kind: 'row_without_blob', damage: (path) => rm(path) },
    { what: 'cut short', kind: 'wrong_size', damage: (path) => truncate(path, 100) },
    { what: 'empty', kind: 'wrong_size', damage: (path) => truncate(path, 0) },
    {
      what: 'changed',
      kind: 'wrong_hash',
      deep: true,
      damage: async (path) => {
        const bytes = await readFile(path)
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
        await writeFile(path, bytes)
      },
    },
  ])('$what: its clips fail, and the same bytes are transcoded again', async ({ kind, deep = false, damage }) => {
    const { bytes, id, file } = await newClip()
    const shared = idIn(await service.upload(bytes))
    await damage(pathOf(file))
    const found = { kind, file: blobFile(file), fixed: false }
    // Checking changes nothing.
    for (let look = 0; look < 2; look++) {
      expect((await check({ deep })).findings).toEqual([expect.objectContaining(found)])
      expect((await stateOf(id)).state).toBe('ready')
    }
    expect((await check({ deep, fix: true })).findings).toEqual([expect.objectContaining({ ...found, fixed: true })])
    for (const each of [id, shared]) {
      expect(await stateOf(each)).toMatchObject({ state: 'failed', failure: { code: 'internal' } })
      expect((await service.get(`/f/${each}.mp4`)).status).toBe(404)
    }
    expect((await check({ deep: true })).findings).toEqual([])

    const again = await service.upload(bytes)
    expect([again.status, again.headers.get('x-media-state')]).toEqual([201, 'ready'])
    expect((await service.get(`/f/${idIn(again)}.mp4`)).status).toBe(200)
    expect((await check({ deep: true })).findings).toEqual([])
  })

  test('if only its row has another size the row is repaired', async () => {
    const { id, file } = await newClip()
    await service.deps.pool.query('update blobs set bytes = 7 where sha256 = $1 and extension = $2', keyOf(file))
    const actual = (await readFile(pathOf(file))).length
    expect((await check()).findings).toMatchObject([{ kind: 'wrong_size', actual, expected: 7, fixed: false }])
    expect((await check({ fix: true })).findings).toMatchObject([{ kind: 'wrong_size', fixed: true }])
    expect((await check({ deep: true })).findings).toEqual([])
    expect((await stateOf(id)).state).toBe('ready')
  })

  test('stored again between the check and the repair, it costs no clip', async () => {
    const { id, file } = await newClip()
    const bytes = await readFile(pathOf(file))
    await rm(pathOf(file))
    let looks = 0
    const stat = async (name: BlobName) => {
      // The second check precedes the loss of the source.
      if (name.sha256 === file.sha256 && ++looks === 2) await writeFile(pathOf(file), bytes)
      return service.deps.blobs.stat(name)
    }
    const beside = { ...service, deps: { ...service.deps, blobs: { ...service.deps.blobs, stat } } }
    expect((await check({ fix: true }, beside)).findings).toMatchObject([{ kind: 'row_without_blob', fixed: false }])
    expect((await stateOf(id)).state).toBe('ready')
    expect((await check({ deep: true })).findings).toEqual([])
  })
})

test('a repair that a kill cut off is found and ended a minute later', async () => {
  const { id, file } = await newClip()
  await rm(pathOf(file))
  const mark = (since: Date) =>
    service.deps.pool.query('update blobs set deleting_since = $3 where sha256 = $1 and extension = $2', [
      ...keyOf(file),
      since,
    ])
  await mark(minutesAgo(0))
  expect((await check({ fix: true })).findings).toEqual([])
  await mark(minutesAgo(2))
  expect((await check({ fix: true })).findings).toMatchObject([{ kind: 'row_without_blob', fixed: true }])
  expect(await stateOf(id)).toMatchObject({ state: 'failed', failure: { code: 'internal' } })
  expect((await check({ deep: true })).findings).toEqual([])
})

test('clips whose original is lost fail', async () => {
  const waiting = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await waiting.upload(gif(50, 20, [{ delay: 10 }]), [], later))
  expect((await check({ deep: true }, waiting)).findings).toEqual([])
  const { rows } = await waiting.deps.pool.query(`select encode(sha256, 'hex') as sha256 from blobs`)
  await waiting.deps.blobs.delete({ ...rows[0], extension: 'source' })
  expect((await check({ fix: true }, waiting)).findings).toMatchObject([{ kind: 'row_without_blob', fixed: true }])
  const { body } = await waiting.get(`/media/${id}`, { token: waiting.token })
  expect(body.success).toMatchObject({ state: 'failed', failure: { code: 'internal' } })
  expect((await check({}, waiting)).findings).toEqual([])
  await waiting.close()
})

test('a file without a row is deleted, unless it is younger than the longest upload', async () => {
  const { id } = await newClip()
  const orphan = await leaveOrphan('orphan')
  const found = { kind: 'blob_without_row', file: blobFile(orphan), fixed: false }
  expect((await check({ inMinutes: 61 })).findings).toMatchObject([found])
  expect((await check({ fix: true, inMinutes: 50 })).findings).toMatchObject([found])
  expect(await readFile(pathOf(orphan), 'utf8')).toBe('orphan')
  expect((await check({ fix: true, inMinutes: 61 })).findings).toMatchObject([{ ...found, fixed: true }])
  expect((await check()).findings).toEqual([])
  expect((await stateOf(id)).state).toBe('ready')
})

test('an unreferenced row without a file is deleted after an hour; younger ones belong to uploads', async () => {
  for (const minutes of [61, 50]) {
    await service.deps.pool.query(
      'insert into blobs (sha256, extension, bytes, unreferenced_at) values ($1, $2, 1, $3)',
      [Buffer.alloc(32, minutes), 'gif', minutesAgo(minutes)],
    )
  }
  const file = `${Buffer.alloc(32, 61).toString('hex')}.gif`
  expect((await check({ fix: true })).findings).toEqual([{ kind: 'row_without_blob', file, fixed: true }])
  expect((await check()).findings).toEqual([])
  await service.deps.pool.query('delete from blobs where unreferenced_at is not null and bytes = 1')
})

test.each([0, 1, 5])('a reference count of %i is corrected', async (wrong) => {
  const { bytes, id, file } = await newClip()
  const { rows } = await service.deps.pool.query(
    'select reference_count from blobs where sha256 = $1 and extension = $2',
    keyOf(file),
  )
  const right = rows[0].reference_count
  const actual = wrong === right ? 2 : wrong
  await service.deps.pool.query(
    `update blobs set reference_count = $3, unreferenced_at = case when $3 = 0 then now() end
     where sha256 = $1 and extension = $2`,
    [...keyOf(file), actual],
  )
  const kind = 'wrong_reference_count'
  expect((await check()).findings).toMatchObject([{ kind, file: blobFile(file), actual, expected: right }])
  expect((await check({ fix: true })).findings).toMatchObject([{ kind, fixed: true }])
  expect((await check()).findings).toEqual([])
  await service.upload(bytes)
  expect((await stateOf(id)).state).toBe('ready')
})

test('an unreferenced file whose row counts a reference is left to housekeeping', async () => {
  const { rows } = await service.deps.pool.query(
    `insert into blobs (sha256, extension, bytes, reference_count) values ($1, 'gif', 4, 1)
     returning encode(sha256, 'hex') as sha256, extension`,
    [createHash('sha256').update('left').digest()],
  )
  await mkdir(dirname(pathOf(rows[0])), { recursive: true })
  await writeFile(pathOf(rows[0]), 'left')
  const file = blobFile(rows[0])
  expect((await check({ fix: true })).findings).toMatchObject([{ kind: 'wrong_reference_count', file, expected: 0 }])
  expect((await check()).findings).toEqual([])
  expect(await service.deps.blobs.stat(rows[0])).toBeDefined()
  await service.deps.pool.query(`delete from blobs where sha256 = $1`, [Buffer.from(rows[0].sha256, 'hex')])
  await rm(pathOf(rows[0]))
})

test('the stored bytes of a token stay exact while clips are added, made, shared, deleted and fail at once; a wrong sum is reported and corrected', async () => {
  const { token, id: tokenId } = await service.newToken()
  const sum = async () =>
    (
      await service.deps.pool.query(
        'select clips::int, bytes::int, reserved_bytes::int from token_storage where token_id = $1',
        [tokenId],
      )
    ).rows[0]
  const add = (bytes: Uint8Array) => service.upload(bytes, [], { ...later, token })
  const remove = (id: string) => service.call('DELETE', `/media/${id}`, { headers: { token } })
  const [shared, single] = [gif(50, 16, [{ delay: 10 }]), gif(50, 17, [{ delay: 10 }])]
  const ids = (await Promise.all([add(shared), add(shared), add(single), service.upload(shared, [], later)])).map(idIn)
  // Made while they are deleted and shared again.
  await Promise.all([remove(ids[0] as string), add(shared), remove(ids[2] as string), add(single)])
  await expect.poll(async () => (await check()).findings).toEqual([])
  await allMade()
  const kept = await sum()
  expect([kept.clips, kept.reserved_bytes]).toEqual([3, 0])
  expect(kept.bytes).toBeGreaterThan(2 * shared.length + single.length)
  const { rows: failed } = await service.deps.pool.query(
    `update sources set state = 'failed', error_code = 'internal' from clips
     where source_id = sources.id and clips.id = $1 returning sources.id`,
    [ids[1]],
  )
  expect((await sum()).clips).toBe(1)
  await service.deps.pool.query(`update sources set state = 'ready', error_code = null where id = $1`, [failed[0].id])
  expect(await sum()).toEqual(kept)

  await service.deps.pool.query(
    'update token_storage set bytes = bytes + 7, clips = 9, reserved_bytes = 5 where token_id = $1',
    [tokenId],
  )
  const wrong = { kind: 'wrong_stored_sum', token: tokenId, actual: kept.bytes + 12, expected: kept.bytes }
  expect((await check()).findings).toEqual([{ ...wrong, fixed: false }])
  expect((await check({ fix: true })).findings).toEqual([{ ...wrong, fixed: true }])
  expect(await sum()).toEqual(kept)
  await service.deps.pool.query('delete from token_storage where token_id = $1', [tokenId])
  expect((await check({ fix: true })).findings).toMatchObject([{ actual: 0, expected: kept.bytes, fixed: true }])
  expect((await check()).findings).toEqual([])
})

test('puts that a killed process left are reported and deleted, those in progress are not', async () => {
  const incoming = (name: string) => join(service.blobsDir, 'incoming', name)
  for (const minutes of [5, 61, 62]) {
    await writeFile(incoming(String(minutes)), 'x')
    await utimes(incoming(String(minutes)), minutesAgo(minutes), minutesAgo(minutes))
  }
  const found = { kind: 'unfinished_put', fixed: false }
  expect((await check()).findings).toEqual([found, found])
  expect((await check({ fix: true })).findings).toEqual([found, found].map((each) => ({ ...each, fixed: true })))
  expect((await check()).findings).toEqual([])
  expect(await readFile(incoming('5'), 'utf8')).toBe('x')
  await rm(incoming('5'))
})

test('beside a working service it finds and deletes nothing, whatever the order of its reads', async () => {
  const ids = new Set<string>()
  let isWorking = true
  const findings: Finding[] = []
  const looking = (async () => {
    while (isWorking) findings.push(...(await check({ fix: true, deep: true })).findings)
  })()
  const upload = async (width: number) => {
    const id = idIn(await service.upload(gif(width, 18, [{ delay: 10 }]), [], later))
    if (width % 3 === 0) await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
    else ids.add(id)
  }
  for (let first = 40; first < 48; first += 4) {
    await Promise.all([0, 1, 2, 3].map((offset) => upload(first + offset)))
    // No put takes the ten minutes after which its row may go.
    await allMade()
    service.clock.advance({ seconds: 601 })
    await cleanUp(service.deps)
  }
  isWorking = false
  await looking
  expect(findings).toEqual([])
  for (const id of ids) expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
})

test('a store that lists in any order gives the same findings, with second checks', async () => {
  const { file } = await newClip()
  const orphan = await leaveOrphan('orphan')
  await rm(pathOf(file))
  const { blobs } = service.deps
  const list = async function* () {
    const all: StoredBlob[] = []
    for await (const blob of blobs.list()) all.unshift(blob)
    yield* all
  }
  const shuffled = { ...service, deps: { ...service.deps, blobs: { ...blobs, list } } }
  const { findings } = await check({}, shuffled)
  expect(new Set(findings.map((each) => `${each.kind} ${each.file}`))).toEqual(
    new Set([`row_without_blob ${blobFile(file)}`, `blob_without_row ${blobFile(orphan)}`]),
  )
  await rm(pathOf(orphan))
  await check({ fix: true })
})

test('no file younger than the longest upload is deleted', () => {
  expect(service.deps.timeLimits.uploadMs).toBeLessThanOrEqual(LEFTOVER_AGE_MS)
})
