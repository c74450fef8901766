// Clips that one process accepts while many wait. Measures all that an upload does between its file and the clip, but
// for the probe, whose CPU would hide the rest. Half of the waiting clips are of one token, which sends too.
// `node bench/admissions.ts` measures only this.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rateOf } from '@services/common/bench/rate-of'
import { startReport } from '@services/common/bench/report'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { createLogger } from '@services/common/telemetry/logger'
import type pg from 'pg'
import { readConfig } from '../src/config.ts'
import { refuseWhenBusy } from '../src/core/sources/refuse-when-busy.ts'
import { type Deps, openDeps } from '../src/deps.ts'
import { acceptClip } from '../src/ingest/accept/accept-clip.ts'
import { TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'
import { INFO, idOfToken } from './scale/load-clips.ts'

const WAITING = 100_000
const TOKENS = 16
const MEASURED_MS = 5_000

export async function measureAdmissions(report: ReturnType<typeof startReport>, url: string, directory: string) {
  const { config } = readConfig({
    PATH: process.env.PATH,
    MEDIA_BASE_URL: 'http://localhost',
    MEDIA_DATABASE_URL: url,
    MEDIA_DB_NAMESPACE: 'admissions',
    MEDIA_DB_MAX_POOL_SIZE: String(TOKENS),
    MEDIA_BLOBS_DIR: join(directory, 'admissions'),
    MEDIA_WORK_DIR: join(directory, 'admissions', 'work'),
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_QUEUE_LIMIT: String(2 * WAITING),
  })
  const deps = await openDeps(config, createLogger({ name: 'bench', level: 'error' }))
  try {
    await addTokens(deps.pool)
    const probes = { ...deps.probes, run: async () => INFO as never }
    const admit = (token: number) => accept({ ...deps, probes }, idOfToken(token))
    report.figure('admissions-few', {
      what: 'clips accepted with few waiting, without the probe',
      unit: 'a second',
      value: await rateOf(TOKENS, MEASURED_MS, admit),
    })
    await fill(deps.pool)
    const admitted = await rateOf(TOKENS, MEASURED_MS, admit)
    report.row({
      ...{ id: 'admissions-many', what: `clips accepted with ${WAITING} waiting, without the probe`, unit: '/s' },
      ...{ against: 'the bound', ours: admitted, theirs: 200, compared: 'ratio', goal: { atLeast: 1 } },
    })
  } finally {
    await deps.close()
  }
}

/** Counts before the transfer too, like the routes. */
async function accept(deps: Deps, tokenId: string): Promise<void> {
  const content = randomBytes(2_000)
  const path = deps.work.newPath()
  await refuseWhenBusy(deps, tokenId)
  await writeFile(path, content)
  const file = { path, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
  const fields = { title: null, tags: ['Funny'], nsfw: false, attribution: null }
  await acceptClip(deps, { file, fields, tokenId, origin: { kind: 'upload' } })
}

const TOKEN_ID = `('00000000-0000-4000-8000-' || lpad(token::text, 12, '0'))::uuid`

async function addTokens(pool: pg.Pool): Promise<void> {
  await pool.query(
    `insert into admissions_api_tokens (id, name, prefix, hash, scopes, created_at)
      select ${TOKEN_ID}, 'Application', token, sha256(token::text::bytea), '{write}', now()
      from generate_series(0, 999) token`,
  )
}

/** Not vacuumed, as after a burst. */
async function fill(pool: pg.Pool): Promise<void> {
  await pool.query(
    `insert into admissions_sources
        (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, created_at, token_id)
      select gen_random_uuid(), sha256(i::text::bytea), 2, 'processing', 1200000, $1, true, 1, now(), ${TOKEN_ID}
      from (select i, case when i % 2 = 0 then 0 else i / 2 % 1000 end as token from generate_series(1, $2::int) i) made`,
    [JSON.stringify(INFO), WAITING],
  )
  await pool.query(
    `insert into admissions_media_queue.job (name, data, group_id, priority)
      select '${TRANSCODE_QUEUE.name}', jsonb_build_object('sourceId', id), token_id, -(row_number() over (partition by token_id))
      from admissions_sources`,
  )
}

if (import.meta.main) {
  const directory = await mkdtemp(join(tmpdir(), 'bench-admissions-'))
  const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'bench' })
  const report = startReport('media', [])
  try {
    await measureAdmissions(report, postgres.url, directory)
  } finally {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
    report.print()
  }
}
