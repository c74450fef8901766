// `pnpm dev`: the service with embedded defaults. The environment overrides them: with a DATABASE_URL there is no
// embedded PostgreSQL. Data is kept in .data/media of the repository, or in DEV_DATA_DIR.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runDev } from '@services/common/dev/run-dev'
import { readConfig } from './config.ts'
import { createToken } from './core/tokens/create-token.ts'
import { ALL_SCOPES } from './core/tokens/scopes.ts'
import { hashToken } from './core/tokens/token-format.ts'
import { findLiveToken } from './core/tokens/tokens.store.ts'
import type { RunningService } from './serve.ts'

await runDev('media', async ({ port, dataDir, stops, startPostgres, settle, commandLine }) => {
  const defaults: Record<string, string> = {
    MEDIA_BASE_URL: `http://127.0.0.1:${port}`,
    MEDIA_HOST: '127.0.0.1',
    MEDIA_BLOBS_DIR: join(dataDir, 'blobs'),
    MEDIA_WORK_DIR: join(dataDir, 'work'),
    // Lets developers import from local servers; never in production.
    MEDIA_IMPORT_ALLOW_CIDRS: '127.0.0.0/8',
    MEDIA_RATE_LIMIT_UPLOAD: '100000',
    MEDIA_RATE_LIMIT_IMPORT: '100000',
    MEDIA_LOG_LEVEL: 'error',
  }
  // Loads while PostgreSQL starts; a failure is handled where it is awaited.
  const loading = import('./serve.ts')
  loading.catch(() => {})
  Object.assign(defaults, await startPostgres())
  const { config, log } = settle(readConfig, defaults)
  const { serve } = await loading
  const service = await serve(config, log)
  stops.push(service.stop)
  const token = await ensureDevToken(service, join(dataDir, 'dev-token'))
  const base = config.site.baseUrl
  return {
    url: `http://127.0.0.1:${port}`,
    lines: [
      `base URL ${base}`,
      `docs     ${base}/docs`,
      `token    ${token}`,
      `upload   curl -F file=@clip.mp4 -F title=Hello -H 'Token: ${token}' ${base}/media/upload`,
      `import   curl --json '{"source":"https://upload.wikimedia.org/wikipedia/commons/2/2c/Rotating_earth_%28large%29.gif"}' -H 'Token: ${token}' ${base}/media/import`,
      `commands ${commandLine} --help`,
    ],
  }
})

/** Keeps one token over all starts, so that scripts that hold it go on working. */
async function ensureDevToken({ deps }: RunningService, file: string): Promise<string> {
  const kept = (await readFile(file, 'utf8').catch(() => '')).trim()
  if (kept && (await findLiveToken(deps.db, hashToken(kept), new Date()))) return kept
  const { token } = await createToken(deps, { name: 'dev', scopes: [...ALL_SCOPES] })
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${token}\n`, { mode: 0o600 })
  return token
}
