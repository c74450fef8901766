// `pnpm bench:scale`: every list of the service on a million clips, through HTTP, against the bound of its p99. Then
// the rows that housekeeping deletes a second. The service runs as a separate process, without workers: housekeeping
// would delete the expired clips that it was given. The results are written to results/, those of a run with other
// BENCH_ROWS too unless BENCH_RESULTS names a folder.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measureDeletions } from '@services/common/bench/deletions'
import { finishLists, type MeasuredList, measureLists } from '@services/common/bench/lists'
import { lookInto } from '@services/common/bench/postgres'
import { startReport } from '@services/common/bench/report'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { listName, writePosition } from '../src/core/lists/search/position.ts'
import { deleteDeliveriesBefore } from '../src/core/webhooks/deliveries.store.ts'
import type { DB } from '../src/db/tables.ts'
import { deleteTombstones } from '../src/housekeeping.store.ts'
import { measureBulk } from './scale/bulk.ts'
import { createdAt, idOfClip, idOfToken, type Loaded, loadClips, OWNER_ID, OWNER_TOKEN } from './scale/load-clips.ts'
import { NOT_EXPIRED, searchLists } from './scale/search-lists.ts'
import { startService, TOKEN } from './service.ts'

const ROWS = Number(process.env.BENCH_ROWS || 1_000_000)
const RESULTS = process.env.BENCH_RESULTS

/** Requests of each list; fewer do not measure a p99. */
const REQUESTS = Number(process.env.BENCH_REQUESTS || 200)

const SETTINGS = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_RATE_LIMIT_READ: '1000000' }

const report = startReport('media', ['BENCH_ROWS', 'BENCH_REQUESTS'], { script: 'bench:scale', file: 'scale-latest' })
const directory = await mkdtemp(join(tmpdir(), 'bench-lists-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'bench' })
const database = lookInto(postgres.url)
try {
  const postgresVersion = await database.version()
  // The first start migrates; the second works on tables that PostgreSQL has statistics of.
  await (await startService(postgres.url, directory, { settings: SETTINGS })).stop()
  const startedAt = performance.now()
  const loaded = await loadClips(postgres.url, ROWS, new Date())
  report.figure('load', { what: 'loading', unit: 's', value: (performance.now() - startedAt) / 1000 })
  report.figure('rows', { what: 'clips', unit: 'rows', value: await database.rowCount('clips') })
  report.figure('size', { what: 'database', unit: 'MB', value: (await database.databaseBytes()) / 1e6 })
  const service = await startService(postgres.url, directory, { settings: SETTINGS })
  const wrong = await measureLists({ report, database, base: service.base, requests: REQUESTS }, listsOf(loaded))
  await measureBulk({ report, database }, service.base)
  await service.stop()
  await measureDeletions<DB>({ report, database }, [
    { table: 'clips', what: 'tombstones', begin: (db) => deleteTombstones(db, loaded.newest) },
    { table: 'webhook_deliveries', what: 'deliveries', begin: (db) => deleteDeliveriesBefore(db, loaded.newest) },
  ])
  await finishLists(report, { wrong, folder: RESULTS, postgresVersion }, import.meta.url)
} finally {
  await database.close()
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
  report.print()
}

function listsOf(loaded: Loaded): MeasuredList[] {
  const asAdmin = { token: TOKEN }
  const asOwner = { token: OWNER_TOKEN }
  const tokenOf = (index: number) => idOfToken(1 + (index % (loaded.tokens - 1)))
  const each = <Value>(make: (index: number) => Value) => Array.from({ length: 50 }, (_, index) => make(index))
  const clips = (
    id: string,
    what: string,
    [query, condition]: readonly [query: string | string[], condition: string],
    headers = asAdmin,
  ): MeasuredList => ({
    id,
    what,
    headers,
    paths: [query].flat().map((text) => `/media?${text}`),
    rows: `select clips.id from clips join sources on sources.id = source_id
      where deleted_at is null and ${NOT_EXPIRED} and ${condition} order by clips.created_at desc, clips.id desc`,
    idsOf: idsOfItems,
  })
  const byCursor = (id: string, what: string, share: number, [query, condition] = ['', 'true'], headers = asAdmin) => {
    const index = Math.floor(share * loaded.rows)
    const last = { key: createdAt(loaded, index), id: idOfClip(index) }
    const parameters = { ...Object.fromEntries(new URLSearchParams(query)), sort: 'created', order: 'desc' }
    const isAfter = `(clips.created_at, clips.id) < ('${last.key.toISOString()}', '${last.id}')`
    const cursor = writePosition(last, listName(parameters))
    return clips(id, what, [`${query}&cursor=${cursor}`, `${condition} and ${isAfter}`], headers)
  }
  const tagged = (tag: string) => [`tag=${tag}`, `tags @> array['${tag}']`] as const
  const inState = (state: string) => [`state=${state}`, `state = '${state}'`] as const
  const of = (index: number) => [`token=${idOfToken(index)}`, `clips.token_id = '${idOfToken(index)}'`] as const
  const both = (...filters: (readonly [string, string])[]) =>
    [filters.map(([query]) => query).join('&'), filters.map(([, condition]) => condition).join(' and ')] as const
  const nsfw = ['nsfw=true', 'nsfw'] as const
  const owner = [``, `clips.token_id = '${OWNER_ID}'`] as const

  // Neither deleted nor failed, by the numbers of load-clips.ts.
  const ready = each((index) => idOfClip(20 * Math.floor((index * loaded.rows) / 1_000) + 2))
  const one = (id: string, what: string, path: (id: string) => string, idIn: RegExp, headers = {}): MeasuredList => ({
    ...{ id, what, headers, paths: ready.map(path), rows: `select '${ready[0]}' as id` },
    idsOf: (body) => [idIn.exec(body)?.[1] ?? 'none'],
  })
  return [
    clips('all', 'GET /media, all clips', ['', 'true']),
    byCursor('all-middle', 'GET /media, all clips from the middle', 0.5),
    byCursor('all-last', 'GET /media, the oldest clips', 0.9999),
    clips('all-100', 'GET /media of many tokens', [each(tokenOf).map((id) => `token=${id}`), of(1)[1]]),
    clips('no-token', 'GET /media?token=none', ['token=none', 'clips.token_id is null']),
    clips('owner', 'GET /media of the largest token', owner, asOwner),
    byCursor('owner-last', 'GET /media of the largest token, its oldest', 0.9999, ['', owner[1]], asOwner),
    ...(['Funny', 'Cats', 'Rare', 'Old', 'Elsewhere', 'Unused'] as const).flatMap((tag) => [
      clips(`tag-${tag}`.toLowerCase(), `GET /media?tag=${tag}`, tagged(tag)),
      clips(
        `owner-tag-${tag}`.toLowerCase(),
        `GET /media?tag=${tag} of the largest token`,
        [tagged(tag)[0], `${owner[1]} and ${tagged(tag)[1]}`],
        asOwner,
      ),
      clips(`token-tag-${tag}`.toLowerCase(), `GET /media?tag=${tag}&token=… of a small one`, both(tagged(tag), of(2))),
      clips(`nsfw-tag-${tag}`.toLowerCase(), `GET /media?tag=${tag}&nsfw=true`, both(tagged(tag), nsfw)),
    ]),
    ...(['processing', 'ready', 'failed'] as const).flatMap((state) => [
      clips(state, `GET /media?state=${state}`, inState(state)),
      clips(
        `owner-${state}`,
        `GET /media?state=${state} of the largest token`,
        [inState(state)[0], `${owner[1]} and ${inState(state)[1]}`],
        asOwner,
      ),
      clips(`token-${state}`, `GET /media?state=${state}&token=… of a small one`, both(inState(state), of(2))),
      clips(`${state}-tag-old`, `GET /media?state=${state}&tag=Old`, both(inState(state), tagged('Old'))),
    ]),
    clips('nsfw', 'GET /media?nsfw=true', nsfw),
    clips('owner-nsfw', 'GET /media?nsfw=true of the largest token', ['nsfw=true', `${owner[1]} and nsfw`], asOwner),
    clips('sfw', 'GET /media?nsfw=false', ['nsfw=false', 'not nsfw']),
    ...(['public', 'unlisted', 'private'] as const).flatMap((visibility) => {
      const filter = [`visibility=${visibility}`, `${owner[1]} and visibility = '${visibility}'`] as const
      const oldOnes = [`${filter[0]}&tag=Old`, `${filter[1]} and ${tagged('Old')[1]}`] as const
      return [
        clips(`owner-${visibility}`, `GET /media?${filter[0]} of the largest token`, filter, asOwner),
        clips(`owner-${visibility}-tag-old`, `GET /media?${oldOnes[0]} of the largest token`, oldOnes, asOwner),
      ]
    }),
    {
      ...{ id: 'tags', what: 'GET /media/tags of the largest token', headers: asOwner, paths: ['/media/tags'] },
      rows: `select lower(tag) as id from (select tags from clips
          where ${owner[1]} and deleted_at is null and ${NOT_EXPIRED} order by created_at desc, id desc limit 5000) newest,
          unnest(tags) tag group by 1 order by count(*) desc, 1`,
      idsOf: (body) => JSON.parse(body).success.map(({ tag }: { tag: string }) => tag.toLowerCase()),
    },
    ...searchLists(loaded, TOKEN, idsOfItems),
    one('clip', 'GET /media/{id}', (id) => `/media/${id}`, /"id":"(\w{8})"/, asAdmin),
    one('page', 'GET /gif/{id}', (id) => `/gif/${id}`, /\/(?:gif|f)\/(\w{8})/),
    one('embed', 'GET /embed/{id}', (id) => `/embed/${id}`, /\/f\/(\w{8})\./),
    one('oembed', 'GET /oembed/{id}', (id) => `/oembed/${id}`, /\/embed\/(\w{8})/),
    {
      ...{ id: 'tokens', what: 'GET /tokens', headers: asAdmin, paths: ['/tokens'], idsOf: idsOfItems },
      rows: 'select id from api_tokens order by created_at desc, id desc',
    },
    {
      ...{ id: 'webhooks', what: 'GET /webhooks', headers: asOwner, paths: ['/webhooks'], idsOf: idsOfItems },
      rows: `select id from webhooks where token_id = '${OWNER_ID}' order by created_at, id`,
    },
    {
      ...{ id: 'deliveries', what: 'GET /webhooks/{id}/deliveries', headers: asOwner, idsOf: idsOfItems },
      paths: [`/webhooks/${idOfToken(1)}/deliveries`],
      rows: `select id from webhook_deliveries where webhook_id = '${idOfToken(1)}' order by created_at desc, id desc`,
    },
  ]
}

function idsOfItems(body: string): string[] {
  return JSON.parse(body).success.items.map(({ id }: { id: string }) => id)
}
