import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import { describe, expect } from 'vitest'
import { readConfig } from '../src/config.ts'
import { openDeps } from '../src/deps.ts'
import { serve } from '../src/serve.ts'
import { isWellFormed, makeToken } from '../src/tokens/api-token.ts'
import { ensureBootstrapToken } from '../src/tokens/bootstrap-token.ts'
import { listTokens, revokeToken } from '../src/tokens/tokens.store.ts'
import { settingsOf, startTestService, test } from './service.ts'

const run = promisify(execFile)

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

test('limits are per token, say what is left, and can be raised for one', async () => {
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

test('the bootstrap token has every scope, and ends when another one takes its place', async () => {
  const first = 'a-first-token-of-20-characters'
  const service = await startTestService({ MEDIA_BOOTSTRAP_TOKEN: first, MEDIA_WORKERS_ENABLED: 'false' })
  expect((await service.get('/media/00000000', { token: first })).status).toBe(404)
  expect((await service.get('/media/00000000', { token: `${first}x` })).status).toBe(401)
  await ensureBootstrapToken(service.deps, first)
  expect((await service.get('/media/00000000', { token: first })).status).toBe(404)
  await ensureBootstrapToken(service.deps, 'another-token-of-20-characters')
  expect((await service.get('/media/00000000', { token: first })).status).toBe(401)
  await service.close()
})

test('the bootstrap token outlives workers that do not know it, ends with its variable and comes back with it', async () => {
  const token = 'a-first-token-of-20-characters'
  const service = await startTestService({ MEDIA_BOOTSTRAP_TOKEN: token, MEDIA_WORKERS_ENABLED: 'false' })
  const status = async () => (await service.get('/media/00000000', { token })).status
  const { config } = readConfig(settingsOf(service.deps.config.database.url, service.blobsDir))
  const worker = await openDeps(config, service.deps.log)
  await worker.close()
  expect(await status()).toBe(404)
  const serveOnce = async (bootstrapToken: string | undefined) => {
    const server = { ...config.server, host: '127.0.0.1', port: 0 }
    const other = await serve({ ...config, server, bootstrapToken }, service.deps.log)
    await other.stop()
  }
  await serveOnce(undefined)
  service.clock.advance({ seconds: 3_600 })
  expect(await status()).toBe(401)
  await serveOnce(token)
  expect(await status()).toBe(404)
  await service.close()
})

test('a bootstrap token that was revoked stays revoked, whatever is configured at the next start', async () => {
  const token = 'a-first-token-of-20-characters'
  const service = await startTestService({ MEDIA_BOOTSTRAP_TOKEN: token, MEDIA_WORKERS_ENABLED: 'false' })
  const { deps } = service
  const row = (await listTokens(deps.db)).find((token) => token.is_bootstrap)
  await revokeToken(deps.db, row?.id as string, deps.now())
  for (const configured of [token, undefined, token]) {
    await ensureBootstrapToken(deps, configured)
    expect((await service.get('/media/00000000', { token })).status).toBe(401)
  }
  await service.close()
})

test('the command line makes, lists and revokes tokens', async ({ service }) => {
  const cli = new URL('../src/cli.ts', import.meta.url).pathname
  const env = { ...process.env, ...settingsOf(service.deps.config.database.url, service.blobsDir) }
  const media = (...args: string[]) => run(process.execPath, [cli, ...args], { env, cwd: '/' })

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
    '1h',
    '--json',
  )
  const { token, ...shown } = JSON.parse(made.stdout)
  expect(shown).toMatchObject({ name: 'ci', scopes: ['read'], limits: { read: 7 }, revoked_at: null })
  expect(Math.abs(Date.parse(shown.expires_at) - Date.parse(shown.created_at) - 3_600_000)).toBeLessThan(1_000)
  const used = await service.get('/media/00000000', { token })
  expect([used.status, used.headers.get('ratelimit-limit')]).toEqual([404, '7'])

  const [list] = await Promise.all([
    media('tokens', 'list', '--json'),
    expect(media('tokens', 'create', '--scopes', 'everything')).rejects.toMatchObject({ code: 64 }),
    expect(media('tokens', 'create', '--expires', '99999999999h')).rejects.toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/--expires/),
    }),
    expect(media('tokens', 'revoke', 'nonsense')).rejects.toMatchObject({ code: 64 }),
    expect(media('nonsense')).rejects.toMatchObject({ code: 64 }),
  ])
  expect(list.stdout).not.toContain(token)
  expect(JSON.parse(list.stdout).find(({ id }: { id: string }) => id === shown.id)).toMatchObject({
    name: 'ci',
    prefix: token.slice(0, 8),
  })

  await media('tokens', 'revoke', shown.id)
  expect((await service.get('/media/00000000', { token })).status).toBe(401)
}, 30_000)
