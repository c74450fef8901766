// A token that is revoked, expires or loses its scope while a request of it adds a clip: no clip, and nothing kept.
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type TokenChanges, updateToken } from '../src/core/tokens/tokens.store.ts'
import { openUpload } from './clients/slow-upload.ts'
import { gif } from './gif-bytes.ts'
import { holdCalls } from './hold-calls.ts'
import { formOf, startTestService, type TestService } from './service.ts'
import { arrived, openPiece, tusOf } from './tus.ts'

let service: TestService
let admin: string
const far = createFarServer((request, response) => replies[request.url ?? '']?.(request, response))
const replies: Record<string, RequestListener> = {}
let site: string

beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
  admin = (await service.newToken({ scopes: ['admin'] })).token
  far.listen(0, '127.0.0.1')
  await once(far, 'listening')
  site = `http://127.0.0.1:${(far.address() as AddressInfo).port}`
})
afterAll(async () => {
  far.closeAllConnections()
  far.close()
  await service.close()
})

let sizes = 20
const newGif = () => gif(sizes++, 10, [{ delay: 10 }, { delay: 10, color: 1 }])
interface Outcome {
  status: number
  code?: string
}

const outcomeOf = ({ status, body }: { status: number; body?: { error?: { code: string } } }): Outcome => ({
  status,
  ...(body?.error && { code: body.error.code }),
})

/** A request that waits for the test, after the token was accepted. */
interface Begun {
  finish(): Promise<Outcome>
}
type Way = (token: string) => Promise<Begun>

/** Answers of the site that wait for `release`. */
function heldReply(path: string, answer: RequestListener) {
  const requested = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  replies[path] = async (request, response) => {
    requested.resolve()
    await released.promise
    answer(request, response)
  }
  return { requested: requested.promise, release: () => released.resolve() }
}

const receivedFiles = async () => (await service.listFiles()).filter((path) => path.startsWith('work/'))

const form =
  (bytesOf: () => Promise<Uint8Array> | Uint8Array, fields = ''): Way =>
  async (token) => {
    const bytes = await bytesOf()
    const before = (await receivedFiles()).length
    const begin = `${fields}--b\r\nContent-Disposition: form-data; name="file"; filename="a.gif"\r\n\r\n`
    const upload = openUpload(service.url, { token, 'idempotency-key': crypto.randomUUID() }, begin)
    await upload.write(bytes.subarray(0, 10))
    await expect.poll(async () => (await receivedFiles()).length).toBe(before + 1)
    return {
      finish: async () => {
        await upload.write(bytes.subarray(10))
        upload.end()
        return outcomeOf(await upload.answer)
      },
    }
  }

const imported =
  (send: (path: string, token: string) => Promise<{ status: number; body?: object }>, path: () => string): Way =>
  async (token) => {
    const name = path()
    const bytes = newGif()
    replies['/clip.gif'] = (_request, response) => response.writeHead(200).end(bytes)
    const held = heldReply(name, (_request, response) =>
      name.endsWith('.gif')
        ? response.writeHead(200).end(bytes)
        : response.writeHead(200, { 'content-type': 'text/html' }).end(`<video src="${site}/clip.gif"></video>`),
    )
    const answer = send(name, token)
    await held.requested
    return {
      finish: async () => {
        held.release()
        return outcomeOf(await answer)
      },
    }
  }
const byJson = (path: string, token: string) => service.importFrom({ source: `${site}${path}` }, { token })
const byQuery = (path: string, token: string) =>
  service.get(`/media/import?source=${encodeURIComponent(`${site}${path}`)}`, { token })

const tus: Way = async (token) => {
  const bytes = newGif()
  const path = await tusOf(service, token).begin(bytes.length)
  const piece = openPiece(service, path, { token, 'content-length': bytes.length })
  piece.write(bytes.subarray(0, 10))
  await arrived(service, path, 10)
  return {
    finish: async () => {
      piece.write(bytes.subarray(10))
      return { status: await piece.answer }
    },
  }
}

/** Bytes that another token has added. */
async function knownBytes(): Promise<Uint8Array> {
  const bytes = newGif()
  expect((await service.upload(bytes)).status).toBe(201)
  return bytes
}
const edit = (name: string, value: string) =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

let numbers = 0
const ways: Record<string, Way> = {
  'a form': form(newGif),
  'a form with an edit': form(newGif, edit('speed', '2')),
  'a form with known bytes': form(knownBytes),
  'a form with known bytes and an edit': form(knownBytes, edit('speed', '2')),
  'an import': imported(byJson, () => `/held-${numbers++}.gif`),
  'an import by query': imported(byQuery, () => `/held-${numbers++}.gif`),
  'an import of a page': imported(byJson, () => `/page-${numbers++}`),
  'the last piece of a resumable upload': tus,
}

const change = (id: string, changes: TokenChanges) => updateToken(service.deps.db, id, changes)

const losses: Record<string, { lose: (id: string) => Promise<unknown>; refusal: Outcome }> = {
  'is revoked': {
    lose: (id) => revoke(id),
    refusal: { status: 401, code: 'token_missing_or_invalid' },
  },
  expires: {
    lose: async () => service.clock.advance({ seconds: 60 }),
    refusal: { status: 401, code: 'token_missing_or_invalid' },
  },
  'loses its scope': {
    lose: (id) => change(id, { scopes: ['read'] }),
    refusal: { status: 403, code: 'insufficient_scope' },
  },
}

describe.for(Object.keys(ways))('%s', (name) => {
  const begin = ways[name] as Way

  test.for(Object.keys(losses))('whose token %s meanwhile adds nothing', async (loss) => {
    const { lose, refusal } = losses[loss] as (typeof losses)[string]
    const expiresAt = loss === 'expires' ? new Date(+service.clock.now() + 60_000) : undefined
    const { token, id } = await service.newToken({ ...(expiresAt && { expiresAt }) })
    const begun = await begin(token)
    const before = await service.countRows()
    await lose(id)
    const outcome = await begun.finish()
    expect(refusal).toMatchObject(outcome)
    expect(await service.countRows()).toEqual(before)
    await expect.poll(receivedFiles).toEqual([])
    const { rows } = await service.deps.pool.query(
      `select (select count(*)::int from idempotency_keys where token_id = $1) as keys,
              (select coalesce(sum(clips), 0)::int from token_days where token_id = $1) as clips`,
      [id],
    )
    expect(rows).toEqual([{ keys: 0, clips: 0 }])
  })

  test('whose token is kept adds a clip', async () => {
    const { token } = await service.newToken()
    const begun = await begin(token)
    const { clips } = await service.countRows()
    expect([200, 201, 204]).toContain((await begun.finish()).status)
    expect((await service.countRows()).clips).toBe(clips + 1)
  })
})

test('a refusal says how to authenticate, and a key whose token was extended works', async () => {
  const { token, id } = await service.newToken({ expiresAt: new Date(+service.clock.now() + 60_000) })
  const headers = { token, 'idempotency-key': 'extended' }
  const bytes = newGif()
  const held = heldReply('/extended.gif', (_request, response) => response.writeHead(200).end(bytes))
  const add = () => service.importFrom({ source: `${site}/extended.gif` }, headers)
  const first = add()
  await held.requested
  service.clock.advance({ seconds: 60 })
  held.release()
  const refused = await first
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Token realm="media"'])
  await change(id, { expiresAt: null })
  expect((await add()).status).toBe(201)
})

const revoke = (id: string) => service.call('DELETE', `/tokens/${id}`, { headers: { token: admin } })
const upload = async (token: string, bytes: Uint8Array) =>
  service.call('POST', '/media/upload', { body: await formOf(bytes), headers: { token } })

test('a revocation is answered after the acceptance that it meets, and nothing is added later', async () => {
  const { token, id } = await service.newToken()
  // The last request of the transaction, after the token is held.
  const queueing = holdCalls(service.deps.queue, 'send')
  const added = upload(token, newGif())
  await queueing.reached
  let isRevoked = false
  const revoked = revoke(id).finally(() => {
    isRevoked = true
  })
  await expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
  expect(isRevoked).toBe(false)
  queueing.release()
  expect([(await added).status, (await revoked).status]).toEqual([201, 204])
})

/** Points at which an acceptance waits: for the storage, and for another transaction. */
const waits: Record<
  string,
  () => Promise<{ bytes: Uint8Array; reached: () => Promise<unknown>; release: () => unknown }>
> = {
  'the storage': async () => {
    const { reached, release } = holdCalls(service.deps.blobs, 'put')
    return { bytes: newGif(), reached: () => reached, release }
  },
  'the source of known bytes': async () => {
    const bytes = await knownBytes()
    const client = await service.deps.pool.connect()
    onTestFinished(() => client.release(true))
    await client.query('begin')
    await client.query('select from sources for update')
    const reached = () => expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
    return { bytes, reached, release: () => client.query('commit') }
  },
}

test.for(Object.keys(waits))('an acceptance that waits for %s keeps no revocation waiting', async (point) => {
  const { bytes, reached, release } = await (waits[point] as (typeof waits)[string])()
  const { token, id } = await service.newToken()
  const before = await service.countRows()
  const added = upload(token, bytes)
  await reached()
  expect((await revoke(id)).status).toBe(204)
  await release()
  expect(outcomeOf(await added)).toEqual({ status: 401, code: 'token_missing_or_invalid' })
  expect(await service.countRows()).toEqual(before)
})
