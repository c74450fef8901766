import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { createMediaClient, MediaError, type MediaErrorCode } from '../../../packages/media-client/src/media-client.ts'
import { ERROR_CODES } from '../../../packages/media-client/src/media-error.ts'
import { errorCatalogue } from '../src/errors.ts'
import { clip } from './clips.ts'
import { startTestService, type TestService, test } from './service.ts'

const clientOf = ({ url, token }: TestService) => createMediaClient({ baseUrl: `${url}/`, token })
const bytesOf = async (name: Parameters<typeof clip>[0]) => new Blob([new Uint8Array(await readFile(await clip(name)))])

async function codeOf(call: Promise<unknown>): Promise<MediaErrorCode | undefined> {
  const error = await call.then(
    () => undefined,
    (reason) => reason,
  )
  if (error instanceof MediaError) return error.code
  throw error ?? new Error('the call succeeded')
}

test('it knows every error code of the service', () => {
  expect([...ERROR_CODES].sort()).toEqual(Object.keys(errorCatalogue).sort())
})

test.for([false, true])(
  'an upload has its fields and progress, and answers when the clip is ready (in pieces: %s)',
  async (resumable, { service }) => {
    const client = clientOf(service)
    const file = await bytesOf('plain.mp4')
    const progress: number[] = []
    const added = await client.upload(file, {
      fields: {
        ...{ title: 'Grüße 🎈, and a comma', tags: ['one, two', 'three'], nsfw: true, start: 0.5, duration: '1.2' },
        attribution: { site: 'reddit', user: 'someone' },
        ...{ mute: true, of_a_newer_service: 'ignored' },
      },
      onProgress: ({ loaded, total }) => progress.push(loaded / total),
      resumable,
    })
    expect(added).toMatchObject({ state: 'ready', isReplay: false, page: `https://media.example/gif/${added.id}` })
    expect(progress.at(-1)).toBe(1)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    const found = await client.get(added.id)
    expect(found).toMatchObject({
      ...{ title: 'Grüße 🎈, and a comma', tags: ['one, two', 'three'], nsfw: true },
      attribution: { site: 'reddit', user: 'someone' },
      ...{ edit: { start: 0.5, duration: 1.2 }, source: { bytes: file.size } },
    })
  },
)

test('a watch of a hidden clip ends with that', async ({ service }) => {
  const client = clientOf(service)
  const { id } = await client.upload(await bytesOf('plain.gif'))
  await service.deps.pool.query('update clips set hidden_at = now() where id = $1', [id])
  const types: string[] = []
  for await (const { type } of client.watch(id)) types.push(type)
  expect(types).toEqual(['hidden'])
})

test('a watch of all clips reports each change, and resumes at a position', async ({ service }) => {
  const { token } = await service.newToken()
  const client = createMediaClient({ baseUrl: service.url, token })
  const file = await bytesOf('plain.gif')
  const seen: string[] = []
  let after = ''
  for await (const event of client.watchAll()) {
    if (event.type === 'position' && after === '') {
      after = event.after
      const { id } = await client.upload(file)
      await client.delete(id)
    } else if (event.type !== 'position') seen.push(event.type)
    if (event.type === 'deleted') break
  }
  expect(seen.at(-1)).toBe('deleted')
  const resumed = []
  for await (const event of client.watchAll({ after })) {
    if (event.type !== 'position') resumed.push(event.type)
    if (event.type === 'deleted') break
  }
  expect(resumed).toEqual(['deleted'])
  await expect(async () => {
    for await (const _ of createMediaClient({ baseUrl: service.url, token: 'mh_x' }).watchAll());
  }).rejects.toMatchObject({ code: 'token_missing_or_invalid' })
})

test('bytes may be a Blob, an ArrayBuffer or a Buffer', async ({ service }) => {
  const client = clientOf(service)
  const bytes = await readFile(await clip('plain.gif'))
  for (const file of [new Blob([bytes]), bytes, Uint8Array.from(bytes).buffer]) {
    expect((await client.upload(file)).state).toBe('ready')
  }
})

test('clips are changed, listed over all pages with a filter, and deleted once', async ({ service }) => {
  const { token } = await service.newToken()
  const client = createMediaClient({ baseUrl: service.url, token })
  const file = await bytesOf('plain.gif')
  const ids: string[] = []
  for (const title of ['one', 'two', 'three']) {
    ids.push((await client.upload(file, { fields: { title } })).id)
    service.clock.advance({ seconds: 1 })
  }
  const changed = await client.update(ids[0] as string, { title: null, nsfw: true })
  expect(changed).toMatchObject({ title: null, nsfw: true })
  const { etag } = await client.get(ids[0] as string)
  expect(etag).toBe(changed.etag)
  expect((await client.update(ids[0] as string, { tags: ['x'] }, { etag })).etag).not.toBe(etag)
  expect(await codeOf(client.update(ids[0] as string, { tags: ['y'] }, { etag }))).toBe('clip_changed')

  const listed = async (options: Parameters<typeof client.list>[0]) => {
    const found: string[] = []
    for await (const { id } of client.list(options)) found.push(id)
    return found
  }
  expect(await listed({ pageSize: 2 })).toEqual(ids.toReversed())
  expect(await listed({ nsfw: true })).toEqual([ids[0]])

  await client.delete(ids[0] as string)
  expect(await codeOf(client.delete(ids[0] as string))).toBe('gone')
  expect(await codeOf(client.get(ids[0] as string))).toBe('gone')
  expect(await listed({})).toEqual(ids.slice(1).toReversed())
})

test('many clips are changed and deleted at once, each with its outcome', async ({ service }) => {
  const { token } = await service.newToken()
  const client = createMediaClient({ baseUrl: service.url, token })
  const file = await bytesOf('plain.gif')
  const [one, two] = [(await client.upload(file)).id, (await client.upload(file)).id]
  expect(await client.bulk([one, 'none1234', two], { action: 'tag', tags: ['many'] })).toEqual([
    { id: one, ok: true },
    { id: 'none1234', ok: false, code: 'not_found', message: expect.any(String) },
    { id: two, ok: true },
  ])
  expect((await client.get(two)).tags).toEqual(['many'])
  expect(await client.tags({ limit: 1 })).toEqual([{ tag: 'many', count: 2 }])
  expect(await client.usage()).toMatchObject({ stored: { limit_bytes: null }, today: { limit_bytes: 5 * 2 ** 30 } })
  const archive = await client.archive([one, two], { kind: 'gif' })
  expect((await archive.arrayBuffer()).byteLength).toBe(Number(archive.headers.get('content-length')))
  await expect(client.archive(['none1234'])).rejects.toMatchObject({
    code: 'not_found',
    details: { ids: ['none1234'] },
  })
  await client.bulk([one, two], { action: 'lifetime', expires_in: null })
  await client.bulk([one, two], { action: 'delete' })
  expect(await codeOf(client.get(one))).toBe('gone')
})

test('a refusal has code, status, field, details and the id of the request', async ({ service }) => {
  const client = clientOf(service)
  const long = client.upload(await bytesOf('plain.gif'), { fields: { speed: 9 } })
  await expect(long).rejects.toMatchObject({
    ...{ name: 'MediaError', code: 'invalid_field', status: 422, param: 'speed', requestId: expect.any(String) },
  })
  expect(await codeOf(client.get('none1234'))).toBe('not_found')
  expect(await codeOf(createMediaClient({ baseUrl: service.url, token: 'mh_wrong' }).get('none1234'))).toBe(
    'token_missing_or_invalid',
  )
  expect(await codeOf(client.upload(new Blob(['no clip']), { resumable: true }))).toBe('unsupported_media_type')
  const { token } = await service.newToken({ scopes: ['read'] })
  const reader = createMediaClient({ baseUrl: service.url, token })
  await expect(reader.import('https://example.com/a.gif')).rejects.toMatchObject({
    code: 'insufficient_scope',
    details: { scope: 'write' },
  })
})

test('without a token an upload gets a delete token, which deletes it', async () => {
  const open = await startTestService({ MEDIA_UPLOAD_AUTH: 'optional' })
  try {
    const client = createMediaClient({ baseUrl: open.url })
    const { id, deleteToken, expiresAt } = await client.upload(await bytesOf('plain.gif'))
    expect(expiresAt?.getTime()).toBeGreaterThan(open.clock.now().getTime())
    expect(await codeOf(client.delete(id, { deleteToken: 'md_wrong' }))).toBe('not_found')
    await client.delete(id, { deleteToken: deleteToken as string })
    expect((await open.get(`/gif/${id}`)).status).toBe(410)
  } finally {
    await open.close()
  }
})
