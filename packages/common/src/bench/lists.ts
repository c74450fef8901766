// Lists at size. Each is requested through HTTP until its p99 is known, and its first answer is compared with a query
// of the same rows. A wrong answer or a refusal never counts as a fast one; the run reports it and fails. Rows come
// from load-rows.ts. Tests: lists.test.ts, and each service's test/lists-bench.slow.test.ts.
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import type { BenchDatabase } from './postgres.ts'
import type { startReport } from './report.ts'

export interface MeasuredList {
  id: string
  what: string
  /** Requested in turn. */
  paths: readonly string[]
  /** SQL of the list's rows in its order, with a column `id`; compared with the answer to the first path. */
  rows: string
  /** Rows before the first path's page. */
  offset?: number
  /** Rows of a full page. */
  size?: number
  headers?: Record<string, string>
  /** Bound of its p99. */
  boundMs?: number
  /** Reads the ids of an answer. */
  idsOf(body: string): string[]
}

interface Service {
  report: ReturnType<typeof startReport>
  database: BenchDatabase
  base: string
  /** Requests of each list. */
  requests: number
}

/** Bound of a list's p99, unless it has its own. */
const BOUND_MS = 300

const AT_ONCE = 2
/** A list that is far too slow gets fewer requests, so that the run ends. */
const LONGEST_MS = 20_000

/** Rows of a full page of most lists. */
const USUAL_PAGE = 50

/** Largest exact total; a larger one is an estimate that says so. */
const MAX_COUNTED = 10_000

/** Largest ratio between an estimate and the rows. */
const MAX_ESTIMATE_RATIO = 2

/** Measures each list; returns the wrong answers as sentences. */
export async function measureLists(service: Service, lists: readonly MeasuredList[]): Promise<string[]> {
  const wrong: string[] = []
  for (const list of lists) {
    const { id, what } = list
    const answers = await requestRepeatedly(service, list)
    const times = answers.map(({ ms }) => ms).sort((a, b) => a - b)
    const percentile = (share: number) => times[Math.ceil(times.length * share) - 1] as number
    const measured = { id, what: `${what}: p99`, against: 'the bound', unit: 'ms', compared: 'ratio' } as const
    service.report.row({ ...measured, ours: percentile(0.99), theirs: list.boundMs ?? BOUND_MS, goal: { atMost: 1 } })
    service.report.figure(`p50-${id}`, { what: `${what}: p50`, unit: 'ms', value: percentile(0.5) })
    const refused = answers.flatMap(({ status }) => (status === 200 ? [] : [status]))
    if (refused.length === 0) wrong.push(...(await differences(service, list)))
    else wrong.push(`${what}: ${refused.length} of ${answers.length} answers were ${[...new Set(refused)].join(', ')}`)
  }
  return wrong
}

/** Writes the results to `folder`, or beside the benchmark; wrong answers are printed and fail the run. */
export async function finishLists(
  report: Service['report'],
  { wrong, folder, postgresVersion }: { wrong: readonly string[]; folder: string | undefined; postgresVersion: string },
  benchmark: string,
): Promise<void> {
  const results = folder ? pathToFileURL(`${resolve(folder)}/`) : new URL('results/', benchmark)
  await report.write(results, { postgres: postgresVersion })
  for (const sentence of wrong) console.error(sentence)
  if (wrong.length > 0) process.exitCode = 1
}

async function requestRepeatedly(service: Service, list: MeasuredList) {
  const answers: { status: number; ms: number }[] = []
  const end = performance.now() + LONGEST_MS
  let requested = 0
  const client = async () => {
    while (requested < service.requests && performance.now() < end) {
      const path = list.paths[requested++ % list.paths.length] as string
      const startedAt = performance.now()
      const { status } = await get(service, list, path)
      answers.push({ status, ms: performance.now() - startedAt })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  return answers
}

async function differences(service: Service, list: MeasuredList): Promise<string[]> {
  const path = list.paths[0] as string
  const { body, headers } = await get(service, list, path)
  const ids = list.idsOf(body)
  const { pool } = service.database
  const page = `select id::text from (${list.rows}) list offset ${list.offset ?? 0} limit ${list.size ?? USUAL_PAGE}`
  const expected = (await pool.query<{ id: string }>(page)).rows.map(({ id }) => id)
  const found = isDeepStrictEqual(ids, expected) ? [] : [`${list.what}: ${path} has other rows than the database`]
  const total = headers.get('x-total-count')
  if (total === null) return found
  const counted = `select count(*)::integer as rows from (${list.rows}) list`
  const { rows } = (await pool.query<{ rows: number }>(counted)).rows[0] as { rows: number }
  const isEstimated = headers.get('x-total-count-estimated') === 'true'
  const isRight = isEstimated ? isEstimate(Number(total), rows) : Number(total) === rows
  return isRight ? found : [...found, `${list.what}: the total is ${total}, estimated: ${isEstimated}; rows: ${rows}`]
}

const isEstimate = (total: number, rows: number) =>
  Math.min(total, rows) > MAX_COUNTED && Math.max(total / rows, rows / total) <= MAX_ESTIMATE_RATIO

async function get({ base }: Service, { headers = {} }: MeasuredList, path: string) {
  const answer = await fetch(base + path, { headers })
  return { status: answer.status, headers: answer.headers, body: await answer.text() }
}
