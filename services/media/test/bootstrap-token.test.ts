import { expect } from 'vitest'
import { readConfig } from '../src/config.ts'
import { ensureBootstrapToken } from '../src/core/tokens/create-token.ts'
import { listTokens, revokeToken } from '../src/core/tokens/tokens.store.ts'
import { openDeps } from '../src/deps.ts'
import { serve } from '../src/serve.ts'
import { embeddedTools } from './clips.ts'
import { settingsOf, startTestService, test } from './service.ts'

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
  const { config } = readConfig({
    ...settingsOf(service.deps.config.database.url, service.blobsDir),
    // Each start of the service runs them ten times, and a distribution's take 100 ms of a core each time.
    MEDIA_FFMPEG_PATH: embeddedTools.ffmpeg.path,
    MEDIA_FFPROBE_PATH: embeddedTools.ffprobe.path,
  })
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
