// `pnpm bench:scale`: every list of the admin API on a million users and ten million audit entries. Lists go through
// HTTP, against the bound of their p99. Then the rows that housekeeping deletes a second. The service runs as a
// separate process, without workers. The results are written to results/, unless BENCH_RESULTS names another folder.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measureDeletions } from '@services/common/bench/deletions'
import { finishLists, type MeasuredList, measureLists } from '@services/common/bench/lists'
import { lookInto } from '@services/common/bench/postgres'
import { startReport } from '@services/common/bench/report'
import { MAX_OFFSET } from '@services/common/database/counted-page'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { deleteOldAuditEntries } from '../src/core/audit/audit.store.ts'
import { deleteEndedSessions } from '../src/core/sessions/end-sessions.store.ts'
import type { Position } from '../src/db/position.ts'
import { MAX_SCANNED } from '../src/db/search-reach.store.ts'
import type { DB } from '../src/db/tables.ts'
import { formatCursor } from '../src/http/bodies/cursor.ts'
import { listsOfConsole, loadForConsole } from './console-lists.ts'
import { makeAdminToken, startService } from './load.ts'
import { emailOf, GROUP, type Loaded, loadAccounts } from './load-accounts.ts'

const ROWS = Number(process.env.BENCH_ROWS || 1_000_000)
/** Requests of each list; fewer do not measure a p99. */
const REQUESTS = Number(process.env.BENCH_REQUESTS || 100)
const RESULTS = process.env.BENCH_RESULTS

const SETTINGS = { AUTH_WORKERS_ENABLED: 'false', AUTH_CONSOLE_ENABLED: 'true', AUTH_HOSTED_PAGES_ENABLED: 'true' }

const report = startReport('auth', ['BENCH_ROWS', 'BENCH_REQUESTS'], { script: 'bench:scale', file: 'scale-latest' })
const dataDir = await mkdtemp(join(tmpdir(), 'bench-lists-'))
const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
const database = lookInto(postgres.url)
try {
  const postgresVersion = await database.version()
  // The first start migrates; the second works on tables that PostgreSQL has statistics of.
  await (await startService(postgres.url, SETTINGS)).stop()
  const startedAt = performance.now()
  const loaded = await loadAccounts(postgres.url, ROWS, new Date())
  report.figure('load', { what: 'loading', unit: 's', value: (performance.now() - startedAt) / 1000 })
  for (const table of ['users', 'sessions', 'audit_log_entries', 'messages']) {
    report.figure(`rows-${table}`, { what: `rows of ${table}`, unit: 'rows', value: await database.rowCount(table) })
  }
  report.figure('size', { what: 'database', unit: 'MB', value: (await database.databaseBytes()) / 1e6 })
  await loadForConsole(postgres.url, loaded)
  const service = await startService(postgres.url, SETTINGS)
  const lists = await listsOf(loaded)
  const wrong = await measureLists({ report, database, base: service.base, requests: REQUESTS }, lists)
  await service.stop()
  // A tenth of the year that the rows are of.
  const before = new Date(loaded.newest.getTime() - 0.9 * 365 * 86_400_000)
  await measureDeletions<DB>({ report, database }, [
    { table: 'audit_log_entries', what: 'audit entries', begin: (db) => deleteOldAuditEntries(db, before) },
    { table: 'sessions', what: 'sessions', begin: (db) => deleteEndedSessions(db, 'created_at', before) },
  ])
  await finishLists(report, { wrong, folder: RESULTS, postgresVersion }, import.meta.url)
} finally {
  await database.close()
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
  report.print()
}

async function listsOf(loaded: Loaded): Promise<MeasuredList[]> {
  const headers = { authorization: `Bearer ${await makeAdminToken()}` }
  const lastPage = (rows: number) => Math.ceil(rows / 50)
  /** Order of the console. */
  const newest = 'sort=created_at desc'
  const pages = (last: number) => ({ first: 1, middle: Math.ceil(last / 2), last })

  const usersBy = (condition: string, direction = 'desc') =>
    `select id from users where aud = 'authenticated' and ${condition} order by created_at ${direction}, id ${direction}`
  const users = (id: string, what: string, query: string, rows: string, offset = 0): MeasuredList => ({
    ...{ id: `users${id}`, what: `GET /admin/users${what}`, paths: [`/admin/users?${query}`], rows, offset, headers },
    idsOf: (body) => idsIn(JSON.parse(body).users),
  })
  /** A text without three letters is found in a large table at the beginning of an address or name only. */
  const usersFound = (id: string, text: string, what: string, query = '', offset = 0) => {
    const pattern = text.length > 2 || loaded.rows <= MAX_SCANNED ? `%${text}%` : `${text}%`
    const condition = `(email like lower('${pattern}') or user_metadata ->> 'full_name' ilike '${pattern}')`
    const path = `filter=${encodeURIComponent(text)}${query}`
    return users(`-filter-${id}`, `?filter=${what}`, path, usersBy(condition), offset)
  }
  /** Reads the place of a row: the query that begins behind it, and its time and id as SQL. */
  const placeOf = async (table: string, id: string) => {
    const text = `select id::text, to_json(created_at) #>> '{}' as created_at from ${table} where id = ${id}`
    const place = (await database.pool.query<Position>(text)).rows[0] as Position
    return { query: `limit=50&cursor=${formatCursor(place)}`, at: `'${place.created_at}'`, id: `'${place.id}'` }
  }
  const userAt = (share: number) => placeOf('users', `md5('user ${Math.floor(share * loaded.rows)}')::uuid`)
  const entryAt = (share: number) =>
    placeOf('audit_log_entries', `md5('entry ${Math.floor(share * 10 * loaded.rows)}')::uuid`)
  const usersAfter = (id: string, what: string, place: Awaited<ReturnType<typeof placeOf>>) =>
    users(id, what, place.query, usersBy(`(created_at, id) > (${place.at}, ${place.id})`, 'asc'))

  const entries = (id: string, what: string, condition: string, page: number, query = ''): MeasuredList => ({
    ...{ id: `audit${id}`, what: `GET /admin/audit${what}`, paths: [`/admin/audit?page=${page}${query}`], headers },
    rows: `select id from audit_log_entries where ${condition} order by created_at desc, id`,
    offset: (page - 1) * 50,
    idsOf: (body) => idsIn(JSON.parse(body)),
  })
  const entriesAfter = (id: string, what: string, place: Awaited<ReturnType<typeof placeOf>>): MeasuredList => ({
    ...entries(id, what, `created_at < ${place.at} or (created_at = ${place.at} and id > ${place.id})`, 1),
    paths: [`/admin/audit?${place.query}`],
  })
  const entriesFound = (id: string, scope: 'author' | 'action' | 'type', text: string, page = 1) => {
    const keys = { author: ['actor_username', 'actor_name'], action: ['action'], type: ['log_type'] }[scope]
    const condition = keys.map((key) => `payload ->> '${key}' ilike '%${text}%'`).join(' or ')
    const query = `&query=${encodeURIComponent(`${scope}:${text}`)}`
    return entries(`-${id}`, `?query=${scope}:${text}, page ${page}`, condition, page, query)
  }

  const messages = (id: string, what: string, query: string, condition: string, page = 1): MeasuredList => ({
    ...{ id: `messages${id}`, what: `GET /admin/messages${what}`, headers },
    paths: [`/admin/messages?page=${page}${query}`],
    rows: `select id from messages where ${condition} order by created_at desc, id`,
    offset: (page - 1) * 50,
    idsOf: (body) => idsIn(JSON.parse(body).messages),
  })
  const ofUser = async (index: number) =>
    String((await database.pool.query('select id from users where email = $1', [emailOf(index)])).rows[0].id)
  const someone = await ofUser(Math.floor(0.3 * loaded.rows))

  return [
    ...Object.entries(pages(lastPage(loaded.rows - Math.ceil(loaded.rows / 1_000)))).flatMap(([which, page]) =>
      (['asc', 'desc'] as const).map((direction) => {
        const query = `page=${page}&sort=created_at ${direction}`
        return users(
          `-${which}-${direction}`,
          `, ${which} page, ${direction}`,
          query,
          usersBy('true', direction),
          (page - 1) * 50,
        )
      }),
    ),
    users('-cursor-first', ' by cursor, first', 'limit=50', usersBy('true', 'asc')),
    usersAfter('-cursor-middle', ' by cursor, middle', await userAt(0.5)),
    usersAfter('-cursor-last', ' by cursor, last', await userAt(0.0001)),
    users('-cursor-newest', ' by cursor, newest', `limit=50&${newest}`, usersBy('true')),
    usersFound('all', 'example.com', 'part of all addresses'),
    usersFound('all-cursor', 'example.com', 'part of all addresses, by cursor', `&limit=50&${newest}`),
    usersFound('common-cursor', 'maria', 'a common first name, by cursor', `&limit=50&${newest}`),
    usersFound('all-deep', 'example.com', 'part of all addresses, page 150', '&page=150', 149 * 50),
    usersFound('common', 'maria', 'a common first name'),
    usersFound('full-name', 'Maria Müller', 'a full name'),
    usersFound('one', emailOf(Math.floor(0.7 * loaded.rows)), 'one address'),
    usersFound('nothing', 'not-there', 'nothing'),
    usersFound('one-character', 'q', 'one character'),
    usersFound('two-characters', 'ñz', 'two characters, nothing'),
    // Further pages are refused: a cursor leads there.
    ...Object.entries(pages(Math.min(lastPage(10 * loaded.rows), MAX_OFFSET / 50 + 1))).map(([which, page]) =>
      entries(`-${which}`, `, ${which} page`, 'true', page),
    ),
    entriesAfter('-cursor-middle', ' by cursor, middle', await entryAt(0.5)),
    entriesAfter('-cursor-last', ' by cursor, last', await entryAt(0.99999)),
    entriesFound('author-busy', 'author', emailOf(3)),
    entriesFound('author-one', 'author', emailOf(Math.floor(0.7 * loaded.rows))),
    entriesFound('author-several', 'author', `user-${Math.floor(0.07 * loaded.rows)}`),
    entriesFound('author-group', 'author', GROUP),
    entriesFound('author-group-deep', 'author', GROUP, 150),
    {
      ...entriesFound('author-group-cursor', 'author', GROUP),
      what: `GET /admin/audit?query=author:${GROUP} by cursor`,
      paths: [`/admin/audit?limit=50&query=author:${GROUP}`],
    },
    entriesFound('author-nobody', 'author', 'not-there'),
    {
      ...entries(
        '-user',
        '?query=user:… by cursor',
        `'${someone}' in (payload ->> 'actor_id', payload -> 'traits' ->> 'user_id')`,
        1,
      ),
      paths: [`/admin/audit?limit=50&query=user:${someone}`],
    },
    entriesFound('action-common', 'action', 'login'),
    entriesFound('action-common-deep', 'action', 'login', 150),
    entriesFound('action-rare', 'action', 'recovery_codes_renewed'),
    entriesFound('action-nothing', 'action', 'not-there'),
    entriesFound('type-common', 'type', 'account'),
    entriesFound('type-rare', 'type', 'factor'),
    ...Object.entries(pages(lastPage(loaded.rows))).map(([which, page]) =>
      messages(`-${which}`, `, ${which} page`, '', 'true', page),
    ),
    ...['queued', 'sent', 'failed', 'dropped'].flatMap((state) => [
      messages(`-${state}`, `?state=${state}`, `&state=${state}`, `state = '${state}'`),
      messages(
        `-${state}-sms`,
        `?state=${state}&channel=sms`,
        `&state=${state}&channel=sms`,
        `state = '${state}' and channel = 'sms'`,
      ),
    ]),
    messages('-mail', '?channel=mail', '&channel=mail', `channel = 'mail'`),
    messages('-sms', '?channel=sms', '&channel=sms', `channel = 'sms'`),
    messages('-user', '?user_id=…', `&user_id=${someone}`, `user_id = '${someone}'`),
    messages(
      '-user-failed',
      '?user_id=…&state=failed',
      `&user_id=${someone}&state=failed`,
      `user_id = '${someone}' and state = 'failed'`,
    ),
    {
      ...{ id: 'user', what: 'GET /admin/users/{id}', headers },
      paths: await Promise.all(Array.from({ length: 50 }, (_, n) => ofUser(Math.floor((n * loaded.rows) / 50)))).then(
        (ids) => ids.map((id) => `/admin/users/${id}`),
      ),
      rows: `select id from users where email = '${emailOf(0)}'`,
      idsOf: (body) => [JSON.parse(body).id],
    },
    ...listsOfConsole(headers, await ofUser(77), loaded.newest),
  ]
}

function idsIn(items: { id: string }[]): string[] {
  return items.map(({ id }) => id)
}
