// Real parts for faults: a separate PostgreSQL that can be killed, processes of the service, a site to import from.
// Also the check that follows every fault. Every clip answered 201 exists, and no other file does.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findFreePort } from '@services/common/dev/dev-ports'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { createLogger } from '@services/common/telemetry/logger'
import type { FaultRow } from '@services/common/testing/run/fault-report'
import pg from 'pg'
import { expect } from 'vitest'
import { readConfig } from '../src/config.ts'
import { openDeps } from '../src/deps.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { embeddedTools } from '../test/clips.ts'
import { gif } from '../test/gif-bytes.ts'
import { type Answer, type FormFields, formOf, idIn, listFiles, send, settingsOf } from '../test/service.ts'
import { eventually, type ServiceProcess, startServe, startWorkerProcess } from '../test/service-process.ts'
import { startFlags } from '../test/start-flags.ts'

const run = promisify(execFile)

export const TOKEN = 'the-token-of-the-faults'

/** Housekeeping deletes nothing younger than ten minutes. */
export const LATER_MS = 11 * 60_000

export type Stage = Awaited<ReturnType<typeof openStage>>

/** Opens a stage; `directories` hold blobs and temporary files outside the stage's folder. */
export async function openStage(
  settings: Record<string, string> = {},
  directories: { blobs?: string; work?: string } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'media-faults-'))
  const blobsDir = directories.blobs ?? join(folder, 'blobs')
  const workDir = directories.work ?? join(blobsDir, 'work')
  const port = await findFreePort()
  /** Database on a disk with its log synced: a killed server must recover every confirmed commit. */
  const newPostgres = () => startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), port, database: 'media' })
  let postgres = await newPostgres()
  const { url } = postgres
  const environment = {
    ...settingsOf(url, blobsDir),
    MEDIA_WORK_DIR: workDir,
    MEDIA_MIGRATE_ON_START: 'true',
    MEDIA_BOOTSTRAP_TOKEN: TOKEN,
    MEDIA_PARALLEL_PER_TOKEN: '100',
    MEDIA_SYNC_WAIT: '20s',
    MEDIA_FFMPEG_PATH: embeddedTools.ffmpeg.path,
    MEDIA_FFPROBE_PATH: embeddedTools.ffprobe.path,
    ...settings,
  }
  const started: (ServiceProcess & { output: () => string })[] = []
  const watched = (service: ServiceProcess) => {
    let output = ''
    service.child.stdout?.on('data', (chunk) => {
      output = (output + chunk).slice(-200_000)
    })
    const seen = { ...service, output: () => output }
    started.push(seen)
    return seen
  }
  const query = async (text: string, values: unknown[] = []) => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      return (await client.query(text, values)).rows
    } finally {
      await client.end()
    }
  }
  const filesIn = (directory: string) => listFiles(directory).catch((): string[] => [])
  const stage = {
    url,
    blobsDir,
    environment,
    query,
    startPostgres: async () => {
      postgres = await newPostgres()
    },
    killPostgres: () => process.kill(postgres.pid, 'SIGKILL'),
    /** Suspends PostgreSQL: it answers nothing and keeps its connections. The returned function resumes it. */
    hangPostgres: async () => {
      const { stdout } = await run('pgrep', ['-P', String(postgres.pid)])
      const pids = [postgres.pid, ...stdout.trim().split('\n').map(Number)]
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      return () => {
        for (const pid of pids) process.kill(pid, 'SIGCONT')
      }
    },
    stopPostgres: () => postgres.stop(),
    serve: async (more: Record<string, string> = {}) => watched(await startServe({ ...environment, ...more })),
    /** Starts a worker without waiting until it is ready. */
    startWorker: (more: Record<string, string> = {}) =>
      watched(startWorkerProcess({ ...environment, MEDIA_LOG_LEVEL: 'info', ...more })),
    /** Temporary files of uploads and transcodes. */
    temporary: async () => (await filesIn(workDir)).concat(await filesIn(join(blobsDir, 'incoming'))),
    stored: async () => (await filesIn(blobsDir)).filter((path) => /^[0-9a-f]{2}\//.test(path)),
    /** Counts unfinished sources and jobs; both are 0 when idle. */
    isStill: async () => {
      const [{ sources, jobs }] = await query(
        `select (select count(*) from sources where state = 'processing')::int as sources,
           (select count(*) from media_queue.job where state < 'completed' and name like 'transcode%')::int as jobs`,
      )
      return { sources, jobs }
    },
    end: async () => {
      for (const { child, ended } of started) {
        child.kill('SIGKILL')
        await ended
      }
      await postgres.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  return stage
}

/** Requests and their answers; status 0 stands for a connection that broke or was refused. */
export interface Tally {
  requests: number
  statuses: Record<number, number>
  /** Ids of clips answered 201. */
  accepted: string[]
  /** Longest time to an answer, in ms. */
  longest: number
  /** Time of the last failed answer (`performance.now`): neither 201 nor 429, which is a full queue. */
  lastFailureAt: number
  /** Refusals without Retry-After. */
  withoutRetryAfter: number
}

export const newTally = (): Tally => ({
  ...{ requests: 0, statuses: {}, accepted: [] },
  ...{ longest: 0, lastFailureAt: 0, withoutRetryAfter: 0 },
})

/** Requests a clip, counts the answer and returns the status. */
export async function tell(tally: Tally, ask: () => Promise<Answer>): Promise<number> {
  const startedAt = performance.now()
  tally.requests++
  const answer = await ask().catch(() => undefined)
  const status = answer?.status ?? 0
  tally.longest = Math.max(tally.longest, performance.now() - startedAt)
  tally.statuses[status] = (tally.statuses[status] ?? 0) + 1
  if (answer && status === 201) tally.accepted.push(idIn(answer))
  else if (status !== 429) tally.lastFailureAt = performance.now()
  if ((status === 503 || status === 429) && !answer?.headers.has('retry-after')) tally.withoutRetryAfter++
  return status
}

/** Stops a process as an operator does, and waits for its end. */
export async function stop({ child, ended }: ServiceProcess): Promise<void> {
  child.kill('SIGTERM')
  await ended
}

let contents = 0
/** Makes a clip that was never sent before. */
export const newClip = () => Buffer.from(gif(40 + (contents % 60), 40 + Math.floor(contents++ / 60), TWO_FRAMES))
const TWO_FRAMES = [{ delay: 10 }, { delay: 10, color: 1 as const }]

export async function uploadTo(
  base: string,
  clip: Uint8Array,
  headers: Record<string, string> = {},
  fields: FormFields = [],
): Promise<Answer> {
  const signal = AbortSignal.timeout(60_000)
  return send('POST', `${base}/media/upload`, {
    ...{ body: await formOf(clip, fields), headers: { token: TOKEN, ...headers }, signal },
  })
}

/** Serves a clip that was never sent before at any path. */
export async function startSite() {
  const site = createServer((_request, response) => response.end(newClip()))
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
  return { url: `http://127.0.0.1:${(site.address() as AddressInfo).port}`, close: () => site.close() }
}

export async function importTo(base: string, source: string): Promise<Answer> {
  const headers = { token: TOKEN, 'content-type': 'application/json' }
  return send('POST', `${base}/media/import`, {
    ...{ body: JSON.stringify({ source }), headers, signal: AbortSignal.timeout(60_000) },
  })
}

/** Starts four loops that upload and two that import, one clip at a time; half of the uploads wait for their files. */
export function startLoad(base: string, site: string) {
  const tally = newTally()
  let isOver = false
  const asks = [0, 1, 2, 3].map((n) => () => uploadTo(base, newClip(), n % 2 ? { prefer: 'respond-async' } : {}))
  asks.push(...[0, 1].map(() => () => importTo(base, `${site}/${contents}`)))
  const loops = asks.map(async (ask) => {
    while (!isOver) {
      // A refused client does not retry a thousand times a second.
      if ((await tell(tally, ask)) !== 201) await sleep(100)
    }
  })
  const stop = async () => {
    isOver = true
    await Promise.all(loops)
  }
  return { tally, stop }
}

/**
 * Expects the four files of every clip answered 201, byte for byte, no stuck job and no finding of
 * `blobs check --deep`. After housekeeping eleven minutes later only files of clips may be left. Returns the row of the
 * report.
 */
export async function expectNothingLost(
  stage: Stage,
  base: string,
  tally: Tally,
  laterMs = LATER_MS,
): Promise<FaultRow> {
  await eventually(stage.isStill, { sources: 0, jobs: 0 }, 60_000)
  await eventually(stage.temporary, [], 20_000)
  const lost: string[] = []
  for (const id of tally.accepted) if (!(await hasFiles(base, id))) lost.push(id)
  const check = await blobsCheck(stage)
  await tidyUpLater(stage, laterMs)
  const [{ known, failed }] = await stage.query(
    `select (select count(*) from (select sha256, kind from renditions
         union select sha256, extension from variants where sha256 is not null) as files)::int as known,
       (select count(*) from sources where state = 'failed')::int as failed`,
  )
  const stored = (await stage.stored()).length
  const { statuses } = tally
  const between = (from: number, to: number) =>
    Object.entries(statuses).reduce((sum, [status, n]) => (+status >= from && +status <= to ? sum + n : sum), 0)
  const row = {
    requests: tally.requests,
    '201': statuses[201] ?? 0,
    '4xx': between(400, 499),
    '503': statuses[503] ?? 0,
    broken: statuses[0] ?? 0,
    'longest, ms': Math.round(tally.longest),
    lost: lost.length,
    stuck: failed,
    'orphan files': stored - known,
  }
  expect(check).toMatchObject({ code: 0, found: {} })
  expect(lost).toEqual([])
  expect({ failed, stored }).toEqual({ failed: 0, stored: known })
  expect(Object.keys(statuses).filter((status) => ![0, 201, 429, 503].includes(Number(status)))).toEqual([])
  expect(tally.withoutRetryAfter).toBe(0)
  return row
}

/** Reports whether all four files of a clip exist, byte for byte. */
export async function hasFiles(base: string, id: string): Promise<boolean> {
  const areRight = await Promise.all(['gif', 'jpg', 'mp4', 'webm'].map((kind) => isRight(`${base}/f/${id}.${kind}`)))
  return !areRight.includes(false)
}

async function isRight(url: string): Promise<boolean> {
  const { status, bytes, headers } = await send('GET', url)
  return status === 200 && headers.get('etag') === `"${createHash('sha256').update(bytes).digest('hex')}"`
}

/** Runs the command as an operator does. */
async function blobsCheck({ environment }: Stage): Promise<{ code: unknown; found: object }> {
  const command = [...startFlags, 'src/cli.ts', 'blobs', 'check', '--deep', '--json']
  const options = { cwd: join(import.meta.dirname, '..'), env: { ...process.env, ...environment } }
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; stdout: string }>()
  execFile(process.execPath, command, options, (error, stdout) => resolve({ code: error?.code ?? 0, stdout }))
  const { code, stdout } = await promise
  return { code, found: JSON.parse(stdout).found }
}

/** Runs a round of housekeeping that much later. */
export async function tidyUpLater({ environment }: Stage, laterMs: number): Promise<void> {
  const { config } = readConfig({ ...environment, MEDIA_WORKERS_ENABLED: 'false', MEDIA_MIGRATE_ON_START: 'false' })
  const log = createLogger({ name: 'test', level: 'fatal' })
  const deps = await openDeps(config, log, { tools: embeddedTools, now: () => new Date(Date.now() + laterMs) })
  await cleanUp(deps)
  await deps.close()
}

export const isWorking = ({ output }: { output: () => string }) =>
  eventually(() => output().includes('worker started'), true, 60_000)
