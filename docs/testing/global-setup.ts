// One auth, one media and one inbox for all guides, started as the guides say: `npx -y pnpm@12 dev`.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { findFreePort } from '../../packages/common/src/dev/dev-ports.ts'
import { cloneTemplate } from '../../packages/common/src/testing/database/template-database.ts'
import { openGuide } from './guide.ts'
import { startDatabaseServer } from './postgres.ts'
import { openShell } from './shell.ts'

/** Facts about the running services for the guides' tests. */
export interface DevServices {
  authUrl: string
  mediaUrl: string
  inboxUrl: string
  dataDir: string
  databaseServerUrl: string
  /** Folder of pg_dump, where the machine has one for this server. */
  postgresTools: string | undefined
  /** Settings for commands and further processes on the same databases. */
  settings: Record<string, string>
}

declare module 'vitest' {
  interface ProvidedContext {
    devServices: DevServices
  }
}

const SECRET = 'development-only-secret-of-32-bytes-or-more'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startDatabaseServer()
  const dataDir = await mkdtemp(join(tmpdir(), 'guide-data-'))
  const ports = await Promise.all(Array.from({ length: 4 }, () => findFreePort()))
  const [auth = '', media = '', web = '', smtp = ''] = ports.map(String)
  const empty = (name: string) => cloneTemplate(server.url, name, async () => {})
  const [authDatabase, mediaDatabase] = [await empty('guide_auth'), await empty('guide_media')]
  const databases = { AUTH_DATABASE_URL: authDatabase.url, MEDIA_DATABASE_URL: mediaDatabase.url }
  // Cheap settings that the guides do not mention.
  const cheap = { AUTH_DB_MAX_POOL_SIZE: '4', MEDIA_DB_MAX_POOL_SIZE: '4', AUTH_PASSWORD_HASH_MEMORY_KIB: '1024' }
  const shell = await openShell({
    ...databases,
    ...cheap,
    DEV_DATA_DIR: dataDir,
    AUTH_PORT: auth,
    MEDIA_PORT: media,
    INBOX_WEB_PORT: web,
    INBOX_SMTP_PORT: smtp,
  })
  const end = async () => {
    await shell.close()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
  try {
    const dev = shell.start(openGuide('quick-start.md').take('pnpm@12 dev'))
    await dev.says(/Ctrl-C stops everything/)
    const [authUrl, mediaUrl] = [`http://127.0.0.1:${auth}`, `http://127.0.0.1:${media}`]
    project.provide('devServices', {
      authUrl,
      mediaUrl,
      inboxUrl: `http://127.0.0.1:${web}`,
      dataDir,
      databaseServerUrl: server.url,
      postgresTools: server.tools,
      settings: {
        ...databases,
        ...cheap,
        // The workers of the dev services do the work.
        AUTH_MIGRATE_ON_START: 'false',
        MEDIA_MIGRATE_ON_START: 'false',
        AUTH_WORKERS_ENABLED: 'false',
        MEDIA_WORKERS_ENABLED: 'false',
        AUTH_JWT_SECRET: SECRET,
        AUTH_JWT_KEYS: (await readFile(join(dataDir, 'auth/jwt-keys.json'), 'utf8')).trim(),
        AUTH_SITE_URL: 'http://localhost:3000',
        AUTH_API_EXTERNAL_URL: authUrl,
        AUTH_API_HOST: '127.0.0.1',
        AUTH_PORT: '0',
        AUTH_SMTP_HOST: '127.0.0.1',
        AUTH_SMTP_PORT: smtp,
        AUTH_SMTP_ADMIN_EMAIL: 'auth@example.com',
        MEDIA_BASE_URL: mediaUrl,
        MEDIA_HOST: '127.0.0.1',
        MEDIA_PORT: '0',
        MEDIA_BLOBS_DIR: join(dataDir, 'media/blobs'),
        MEDIA_WORK_DIR: join(dataDir, 'media/work'),
      },
    })
  } catch (error) {
    await end()
    throw error
  }
  return end
}
