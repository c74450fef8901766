import { randomInt } from 'node:crypto'
import { describe, expect } from 'vitest'
import { createRequestCounter } from '../src/core/tokens/request-counter.ts'
import { isWellFormed, makeToken } from '../src/core/tokens/token-format.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { settingsOf, startTestService, test } from './service.ts'

describe('a token', () => {
  test('has a prefix for scanners and a checksum for typing errors', () => {
    const token = makeToken(randomInt)
    expect(token).toMatch(/^mh_[0-9A-Za-z]{28}$/)
    expect(isWellFormed(token)).toBe(true)
    const other = token[10] === 'x' ? 'y' : 'x'
    for (const wrong of [token.slice(0, 10) + other + token.slice(11), token.slice(0, -1), `${token}a`, '', 'mh_']) {
      expect(isWellFormed(wrong)).toBe(false)
    }
    expect(makeToken(randomInt)).not.toBe(token)
  })

  test('is accepted as Token, as Bearer and under its later historic name', async ({ service }) => {
    const statusWith = async (headers: Record<string, string>) => (await service.get('/media/00000000', headers)).status
    expect(await statusWith({ token: service.token })).toBe(404)
    expect(await statusWith({ authorization: `Bearer ${service.token}` })).toBe(404)
    expect(await statusWith({ 'gifs-api-key': service.token })).toBe(404)
  })

  test('missing, unknown, mistyped, expired or revoked: one and the same refusal', async ({ service }) => {
    const expired = await service.newToken({ expiresAt: new Date(service.clock.now().getTime() - 1) })
    const revoked = await service.newToken()
    await service.deps.pool.query('update api_tokens set revoked_at = now() where id = $1', [revoked.id])
    const presented = [
      undefined,
      '',
      'nonsense',
      makeToken(randomInt),
      `${service.token}x`,
      expired.token,
      revoked.token,
    ]
    const answers = await Promise.all(
      presented.map((token) => service.get('/media/00000000', token === undefined ? {} : { token })),
    )
    for (const { status, headers, body } of answers) {
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Token realm="media"'])
      expect(body).toEqual({
        error: {
          code: 'token_missing_or_invalid',
          message: 'A valid Token header is required.',
          request_id: expect.any(String),
        },
        message: 'A valid Token header is required.',
        reference: 'https://media.example/docs/errors#token_missing_or_invalid',
      })
    }
  })

  test('does what its scopes say and nothing else', async ({ service }) => {
    const tried = async (token: string) => {
      const headers = { token }
      const answers = [
        await service.importFrom({}, headers),
        await service.call('POST', '/media/upload', { headers }),
        await service.get('/media/00000000', headers),
        await service.call('DELETE', '/media/00000000', { headers }),
      ]
      return answers.map(({ status }) => status)
    }
    expect(await tried((await service.newToken({ scopes: ['write'] })).token)).toEqual([400, 415, 403, 403])
    expect(await tried((await service.newToken({ scopes: ['read'] })).token)).toEqual([403, 403, 404, 403])
    expect(await tried((await service.newToken({ scopes: ['delete'] })).token)).toEqual([403, 403, 403, 404])
    expect(await tried((await service.newToken({ scopes: ['admin'] })).token)).toEqual([400, 415, 404, 404])
  })

  test('is stored as a hash, and its use noted once a minute', async ({ service }) => {
    const { token, id } = await service.newToken()
    const use = () => service.get('/media/00000000', { token })
    const usedAt = async () =>
      (await service.deps.pool.query('select * from api_tokens where id = $1', [id])).rows[0].last_used_at
    expect(await usedAt()).toBeNull()
    await use()
    await expect.poll(usedAt).not.toBeNull()
    const first = await usedAt()
    service.clock.advance({ seconds: 59 })
    await use()
    await use()
    expect(await usedAt()).toEqual(first)
    service.clock.advance({ seconds: 2 })
    await use()
    await expect.poll(usedAt).not.toEqual(first)
    const { rows } = await service.deps.pool.query('select * from api_tokens')
    expect(JSON.stringify(rows)).not.toContain(token)
  })
})

test('limits are per token, are reported in answers, and can be raised for one', async () => {
  const service = await startTestService({ MEDIA_RATE_LIMIT_READ: '2/1m', MEDIA_WORKERS_ENABLED: 'false' })
  const read = (token: string) => service.get('/media/00000000', { token })
  const { token } = await service.newToken()
  const answers = [await read(token), await read(token), await read(token)]
  expect(answers.map(({ status }) => status)).toEqual([404, 404, 429])
  expect(answers.map(({ headers }) => headers.get('ratelimit-remaining'))).toEqual(['1', '0', '0'])
  const [first, , refused] = answers
  expect(first?.headers.get('ratelimit-limit')).toBe('2')
  expect(first?.headers.get('ratelimit-policy')).toBe('2;w=60')
  expect(refused?.body.error.code).toBe('rate_limited')
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await read((await service.newToken()).token)).status).toBe(404)
  const special = await service.newToken({ limits: { read: 1 } })
  expect([(await read(special.token)).status, (await read(special.token)).status]).toEqual([404, 429])
  await service.close()
})

test('the command line makes, lists and revokes tokens', async ({ service }) => {
  const settings = settingsOf(service.deps.config.database.url, service.blobsDir)
  const media = (...args: string[]) => mediaHere(args, settings)
  const refused = async (...args: string[]) => {
    const { code, stdout, stderr } = await media(...args)
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    return stderr
  }

  const before = Date.now()
  const made = await media(
    'tokens',
    'create',
    '--name',
    'ci',
    '--scopes',
    'read',
    '--limits',
    'read=7',
    '--expires',
    '1w1d',
    '--json',
  )
  const { token, ...shown } = JSON.parse(made.stdout)
  expect(shown).toMatchObject({ name: 'ci', scopes: ['read'], limits: { read: 7 }, revoked_at: null })
  const madeAt = Date.parse(shown.expires_at) - 8 * 86_400_000
  expect([before <= madeAt, madeAt <= Date.now()]).toEqual([true, true])
  const used = await service.get('/media/00000000', { token })
  expect([used.status, used.headers.get('ratelimit-limit')]).toEqual([404, '7'])

  const list = await media('tokens', 'list', '--json')
  await refused('tokens', 'create', '--scopes', 'everything')
  expect(await refused('tokens', 'create', '--expires', '99999999999h')).toMatch(/--expires/)
  expect(await refused('tokens', 'create', '--expires', 'soon')).toContain('(units w, d, h, m, s, ms)')
  await refused('tokens', 'revoke', 'nonsense')
  await refused('nonsense')
  expect(list.stdout).not.toContain(token)
  expect(JSON.parse(list.stdout).find(({ id }: { id: string }) => id === shown.id)).toMatchObject({
    name: 'ci',
    prefix: token.slice(0, 8),
  })

  const changed = JSON.parse(
    (
      await media(
        'tokens',
        'update',
        shown.id,
        '--scopes',
        'write',
        '--limits',
        'quota_bytes=2G',
        '--expires',
        'never',
        '--json',
      )
    ).stdout,
  )
  expect(changed).toMatchObject({
    name: 'ci',
    scopes: ['write'],
    limits: { quota_bytes: 2 * 1024 ** 3 },
    expires_at: null,
  })
  expect((await service.get('/media/00000000', { token })).status).toBe(403)
  const picture = gif(90, 20, [{ delay: 10 }])
  expect((await service.upload(picture, [], { token, prefer: 'respond-async' })).status).toBe(201)
  await service.deps.requestCounter.write()
  const all = await media('tokens', 'usage', '--json')
  const one = await media('tokens', 'usage', shown.id, '--json')
  await refused('tokens', 'usage', '00000000-0000-0000-0000-000000000000')
  await refused('tokens', 'update', shown.id)
  await refused('tokens', 'update', shown.id, '--limits', 'read=1G')
  const usage = JSON.parse(one.stdout)
  const done = { requests: 2, clips: 1, bytes: picture.length }
  expect(usage).toMatchObject([{ id: shown.id, name: 'ci', stored: { clips: 1 }, today: done, last_30_days: done }])
  expect(usage[0].stored.bytes).toBeGreaterThanOrEqual(picture.length)
  expect(JSON.parse(all.stdout)).toHaveLength(JSON.parse(list.stdout).length)

  expect((await media('tokens', 'revoke', shown.id)).code).toBe(0)
  expect((await service.get('/media/00000000', { token })).status).toBe(401)
})

test('an admin creates, lists and revokes tokens over HTTP; others cannot', async ({ service }) => {
  const { token: admin } = await service.newToken({ scopes: ['admin'] })
  const create = (body: unknown, token = admin) =>
    service.call('POST', '/tokens', {
      body: JSON.stringify(body),
      headers: { token, 'content-type': 'application/json' },
    })
  const made = await create({ name: ' ci\u0007 ', scopes: ['read', 'read'], limits: { read: 9 }, expires_in: 60 })
  expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store'])
  const { token, ...shown } = made.body.success
  expect(shown).toMatchObject({ name: 'ci', scopes: ['read'], limits: { read: 9 }, revoked_at: null })
  expect(Date.parse(shown.expires_at) - Date.parse(shown.created_at)).toBe(60_000)
  const { success: longer } = (await create({ name: 'longer', expires_in: '7d' })).body
  expect(Date.parse(longer.expires_at) - Date.parse(longer.created_at)).toBe(7 * 86_400_000)
  expect((await service.get('/media', { token })).headers.get('ratelimit-limit')).toBe('9')

  const list = await service.get('/tokens', { token: admin })
  const members = ['created_at', 'expires_at', 'id', 'last_used_at', 'limits', 'name', 'prefix', 'revoked_at', 'scopes']
  expect([shown, list.body.success.items[0]].map((item) => Object.keys(item).sort())).toEqual([members, members])
  expect(list.text).not.toContain(token)
  expect(list.body.success.items.find(({ id }: { id: string }) => id === shown.id)).toMatchObject({ name: 'ci' })
  for (const answer of [await service.get('/tokens', { token }), await create({ name: 'x' }, token)]) {
    expect([answer.status, answer.body.error.code]).toEqual([403, 'insufficient_scope'])
  }
  for (const [body, param] of [
    [{}, 'name'],
    [{ name: ' \u200b ' }, 'name'],
    [{ name: 'x', scopes: ['everything'] }, 'scopes.0'],
    [{ name: 'x', limits: { reed: 1 } }, 'limits'],
    [{ name: 'x', expires_in: 0 }, 'expires_in'],
    [{ name: 'x', expires_in: '0s' }, 'expires_in'],
    [{ name: 'x', expires_in: 'soon' }, 'expires_in'],
    [{ name: 'x', expires_in: '100000w' }, 'expires_in'],
    [{ name: 'x', expires_in: 1.5 }, 'expires_in'],
  ] as const) {
    expect(await create(body)).toMatchObject({ status: 422, body: { error: { code: 'invalid_field', param } } })
  }
  const end = (id: string) => service.call('DELETE', `/tokens/${id}`, { headers: { token: admin } })
  expect([(await end(shown.id)).status, (await end(shown.id)).status, (await end('x')).status]).toEqual([204, 404, 404])
  expect((await service.get('/media', { token })).status).toBe(401)
})

test('calls are counted in memory and written in batches, even by several processes', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps, token } = service
  const call = (times: number) => Promise.all(Array.from({ length: times }, () => service.get('/media', { token })))
  const written = async () => (await deps.pool.query('select requests from token_days')).rows
  await call(3)
  expect(await written()).toEqual([])
  const other = createRequestCounter(deps)
  const { rows } = await deps.pool.query('select id from api_tokens')
  for (let n = 0; n < 4; n++) other.count(rows[0].id)
  await Promise.all([deps.requestCounter.write(), other.close()])
  await call(2)
  await deps.requestCounter.write()
  expect(await written()).toEqual([{ requests: 9 }])
  service.clock.advance({ seconds: 86_400 })
  await call(1)
  await deps.requestCounter.write()
  expect(await written()).toHaveLength(2)
  service.clock.advance({ seconds: 396 * 86_400 })
  await cleanUp(deps)
  expect(await written()).toHaveLength(1)
  await service.close()
})
