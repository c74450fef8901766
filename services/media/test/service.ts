import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { migrateAll } from '@services/common/process/service-database'
import { createLogger } from '@services/common/telemetry/logger'
import { createTestClock, type TestClock } from '@services/common/testing/clock'
import { pooledSettings } from '@services/common/testing/database/pooled'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import { answerHolder, type HoldAnswer } from '@services/common/testing/http/held-answers'
import { perFile } from '@services/common/testing/per-file'
import type { FastifyInstance } from 'fastify'
import { test as base, expect, inject } from 'vitest'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config.ts'
import { createToken, ensureBootstrapToken } from '../src/core/tokens/create-token.ts'
import type { Scope, TokenLimits } from '../src/db/tables.ts'
import { type Deps, type Overrides, openDeps, SCHEMA } from '../src/deps.ts'
import { startWorker } from '../src/worker.ts'
import { unboxedTools } from './clips.ts'
import { addAlikeSource, addReadySource } from './ready-sources.ts'
import { refuseInTransactions } from './upstreams/outside-transactions.ts'

/** Base URL in the service's settings; tests reach it elsewhere and use the paths. */
export const BASE_URL = 'https://media.example'
export const FILES_BASE_URL = 'https://files.example'

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: bodies are what the test says they are
  body: any
  text: string
  bytes: Buffer
  headers: Headers
}

export interface TestService {
  app: FastifyInstance
  deps: Deps
  clock: TestClock
  /** Where it listens. */
  url: string
  /** A token with every scope. */
  token: string
  blobsDir: string
  newToken(options?: {
    scopes?: Scope[]
    limits?: TokenLimits
    expiresAt?: Date
  }): Promise<{ token: string; id: string }>
  /** `path` is one of the service's own URLs or a path. */
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  call(method: string, path: string, init?: RequestInit): Promise<Answer>
  upload(file: string | Uint8Array, fields?: FormFields, headers?: Record<string, string>): Promise<Answer>
  /** An upload of a file that is ready at once: one transcode of it serves all tests of a run. */
  ready(file: string | Uint8Array, fields?: FormFields, headers?: Record<string, string>): Promise<Answer>
  /** The same for bytes of which the test reads nothing but the hash: no other clip has its source and files. */
  readyAlike(bytes: Uint8Array, fields?: FormFields, headers?: Record<string, string>): Promise<Answer>
  importFrom(body: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Every file on the disk: stored ones and temporary ones. */
  listFiles(): Promise<string[]>
  /** Files and rows once the workers are idle: an answer comes a moment before its worker has tidied up. */
  traces(): Promise<{ files: string[]; clips: number; sources: number }>
  countRows(): Promise<{ clips: number; sources: number }>
  startWorker(): Promise<void>
  close(): Promise<void>
}

/** Fields in the order given; a repeated name is a repeated field. */
export type FormFields = [name: string, value: string][]

/** The database of one test service: a clone of the migrated template. */
export async function createDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  return cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_media`, migrateDatabase)
}

/** Applies the migrations to an empty database. */
export async function migrateDatabase(url: string): Promise<void> {
  const { config } = readConfig(settingsOf(url, tmpdir()))
  await migrateAll(SCHEMA, config, createLogger({ name: 'test', level: 'error' }))
}

/** Settings of a service on this database, as its environment gives them. */
export const settingsOf = (databaseUrl: string, blobsDir: string): Record<string, string> =>
  pooledSettings('MEDIA_', directSettingsOf(databaseUrl, blobsDir))

function directSettingsOf(databaseUrl: string, blobsDir: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    MEDIA_BASE_URL: BASE_URL,
    MEDIA_FILES_BASE_URL: FILES_BASE_URL,
    MEDIA_DATABASE_URL: databaseUrl,
    MEDIA_MIGRATE_ON_START: 'false',
    MEDIA_BLOBS_DIR: blobsDir,
    MEDIA_WORK_DIR: join(blobsDir, 'work'),
    MEDIA_IMPORT_ALLOW_CIDRS: '127.0.0.0/8',
    MEDIA_RATE_LIMIT_UPLOAD: '100000',
    MEDIA_RATE_LIMIT_IMPORT: '100000',
    MEDIA_RATE_LIMIT_IMPORT_BURST: '100000/1m',
    // The longest wait of a test: a shorter one would answer before the clip is made.
    MEDIA_SYNC_WAIT: '10m',
    MEDIA_LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'fatal',
    // Each connection costs a process of PostgreSQL; two are enough for a race.
    MEDIA_DB_MAX_POOL_SIZE: '4',
  }
}

/**
 * Limits that only their own tests reach, on a busy machine too. Housekeeping runs only when a test asks for it:
 * another round would interfere.
 */
const PATIENT = {
  ...{ firstHousekeepingMs: 3_600_000, slowBodyMs: 600_000, unreadBodyMs: 600_000, uploadWindowMs: 600_000 },
  ...{ stalledAnswerMs: 600_000, slotWaitMs: 600_000, webhookAnswerMs: 600_000 },
  ...{ storageAnswerMs: 60_000, storageStartMs: 60_000 },
}
const PATIENT_REMOTE = {
  ...{ connectMs: 60_000, headersMs: 600_000, idleMs: 600_000, totalMs: 600_000 },
  lowSpeed: { bytesPerSecond: 0, windowMs: 600_000, graceMs: 600_000 },
}

/** One per core is the default: on a single core no second clip is made while a test holds the first. */
const SLOTS = { MEDIA_WORKER_CONCURRENCY: '2' }

/** Holds each answer to the document that the service serves. */
let holdAnswer: HoldAnswer | undefined

/** The whole service on a database and a directory of its own, on a real port, with a clock in the test's hand. */
export async function startTestService(
  settings: Record<string, string> = {},
  { timeLimits, ...overrides }: Omit<Overrides, 'now' | 'remoteTimeouts'> = {},
): Promise<TestService> {
  const [database, blobsDir] = await Promise.all([createDatabase(), mkdtemp(join(tmpdir(), 'media-test-'))])
  const clock = createTestClock()
  const own = { ...directSettingsOf(database.url, blobsDir), ...SLOTS, ...settings }
  const { config } = readConfig(pooledSettings('MEDIA_', own))
  const log = createLogger({ name: 'media', ...config.log })
  const deps = await openDeps(config, log, {
    // The static build starts in 2 ms, a distribution's in 100; its own are make-renditions.slow.test.ts and
    // process.slow.test.ts.
    ...(settings.MEDIA_FFMPEG_PATH ? {} : { tools: unboxedTools }),
    ...overrides,
    now: clock.now,
    remoteTimeouts: PATIENT_REMOTE,
    timeLimits: { ...PATIENT, ...timeLimits },
  })
  refuseInTransactions(deps.blobs)
  await ensureBootstrapToken(deps, config.bootstrapToken)
  const app = await createApp(deps)
  let stopWorker = config.worker.enabled ? await startWorker(deps) : undefined
  const url = await app.listen({ host: '127.0.0.1', port: settings.MEDIA_PORT ? config.server.port : 0 })
  const newToken: TestService['newToken'] = async ({ scopes, limits, expiresAt } = {}) =>
    createToken(deps, { name: 'test', scopes: scopes ?? ['write', 'read', 'delete'], limits, expiresAt })
  const { token } = await newToken()
  holdAnswer ??= await answerHolder(app, { mayHaveBody: ['POST /tus 201'] })
  const call = async (method: string, path: string, init: RequestInit = {}) => {
    const answer = await send(method, resolve(url, path), init)
    const header = (name: string) => answer.headers.get(name) ?? undefined
    holdAnswer?.(method, path, { status: answer.status, header, text: answer.text })
    return answer
  }
  const countRows = async () => {
    const { rows } = await deps.pool.query(
      'select (select count(*) from clips)::int as clips, (select count(*) from sources)::int as sources',
    )
    return rows[0]
  }

  const upload: TestService['upload'] = async (file, fields = [], headers = {}) => {
    const body = await formOf(file, fields)
    return call('POST', '/media/upload', { body, headers: { token, ...headers } })
  }

  return {
    app,
    deps,
    clock,
    url,
    token,
    blobsDir,
    newToken,
    call,
    get: (path, headers = {}) => call('GET', path, { headers }),
    upload,
    ready: async (file, ...rest) => {
      await addReadySource(deps, typeof file === 'string' ? await readFile(file) : file, startTestService)
      return upload(file, ...rest)
    },
    readyAlike: async (bytes, ...rest) => {
      await addAlikeSource(deps, bytes, startTestService)
      return upload(bytes, ...rest)
    },
    importFrom: (body, headers = {}) =>
      call('POST', '/media/import', {
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { token, 'content-type': 'application/json', ...headers },
      }),
    listFiles: () => listFiles(blobsDir),
    countRows,
    traces: async () => {
      const isBusy = async () => (await listFiles(blobsDir)).some((path) => path.startsWith('work/'))
      await expect.poll(isBusy, { interval: 20 }).toBe(false)
      return { files: (await listFiles(blobsDir)).sort(), ...(await countRows()) }
    },
    startWorker: async () => {
      stopWorker = await startWorker(deps)
    },
    close: async () => {
      await app.close()
      await stopWorker?.()
      await deps.close()
      await database.drop()
      await rm(blobsDir, { recursive: true, force: true })
    },
  }
}

export async function formOf(file: string | Uint8Array, fields: FormFields = []): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of fields) form.append(name, value)
  const bytes = typeof file === 'string' ? await readFile(file) : file
  form.append('file', new Blob([new Uint8Array(bytes)]), typeof file === 'string' ? basename(file) : 'clip.mp4')
  return form
}

export async function send(method: string, url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, { ...init, method, redirect: 'manual' })
  const bytes = Buffer.from(await response.arrayBuffer())
  const text = bytes.toString('utf8')
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return {
    status: response.status,
    body: isJson && text ? JSON.parse(text) : undefined,
    text,
    bytes,
    headers: response.headers,
  }
}

/** Paths below the directory. Folders come and go while others are at work: one that is gone has nothing. */
export async function listFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const below = entries.map(async (entry) => {
    if (!entry.isDirectory()) return [entry.name]
    return (await listFiles(join(directory, entry.name))).map((path) => join(entry.name, path))
  })
  return (await Promise.all(below)).flat()
}

/** The id in the result of an upload or import. */
export const idIn = ({ body }: Answer): string => new URL(body.success.page).pathname.slice('/gif/'.length)

function resolve(url: string, path: string): string {
  const { pathname, search } = new URL(path, url)
  return url + pathname + search
}

/** `service`: one per file, with default settings. Tests that need others start their own. */
export const test = base.extend<object & { service: TestService }>({
  service: perFile(() => startTestService()),
})
