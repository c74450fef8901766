import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Direction } from '../src/core/lists/clip-lists.store.ts'
import type { Search } from '../src/core/lists/search/lists.store.ts'
import type { Position, Sort } from '../src/core/lists/search/position.ts'
import { searchClips } from '../src/core/lists/search/search-clips.ts'
import type { DB } from '../src/db/tables.ts'
import { gif } from './gif-bytes.ts'
import { startTestService, type TestService } from './service.ts'

/** More than twice what a page reads. */
const CLIPS = 24_000
const MAX_READ = 10_000
const LEAST_READ = 4_000

let service: TestService
let large: string
let small: string

interface Made {
  id: string
  isSmall: boolean
  words: string[]
  isNsfw: boolean
  created: number
  title: string
  bytes: number
  duration: number
  views: number
}

const START = Date.parse('2020-01-01T00:00:00Z')

/** Clip `n`, as the database makes it below. */
const clipOf = (n: number): Made => {
  const words = ['common', n % 2 ? 'odd' : 'even', `img${String(n).padStart(5, '0')}`]
  if (n <= 6_500) words.push('early')
  if (n % 800 === 1) words.push('rare')
  const at = (n * 7919) % CLIPS
  return {
    ...{ id: `a${String(n).padStart(7, '0')}`, isSmall: n % 80 === 0, words, isNsfw: n % 4_000 === 3 },
    ...{
      created: START + n * 1000,
      title: `${String(at).padStart(5, '0')} ${words.join(' ')}`,
      bytes: at,
      duration: n % 7,
      views: n % 5,
    },
  }
}
const CLIP_LIST = Array.from({ length: CLIPS }, (_, index) => clipOf(index + 1))

beforeAll(async () => {
  service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_SYNC_WAIT: '0',
    MEDIA_DATABASE_POOLER: 'none',
  })
  large = (await service.newToken()).id
  small = (await service.newToken()).id
  await service.upload(gif(20, 10, [{ delay: 10 }]), [], { token: service.token }) // the source of all
  const client = await service.deps.pool.connect()
  // The triggers would take half a minute.
  await client.query(`set session_replication_role = 'replica'`)
  await client.query(
    `insert into clips (id, token_id, source_id, title, source_kind, created_at, nsfw)
     select 'a' || lpad(n::text, 7, '0'), case when n % 80 = 0 then $2::uuid else $1::uuid end, sources.id,
       lpad((n * 7919 % ${CLIPS})::text, 5, '0') || ' ' || concat_ws(' ', 'common', case when n % 2 = 1 then 'odd' else 'even' end,
         'img' || lpad(n::text, 5, '0'), case when n <= 6500 then 'early' end, case when n % 800 = 1 then 'rare' end),
       'upload', '2020-01-01Z'::timestamptz + n * interval '1 s', n % 4000 = 3
     from generate_series(1, ${CLIPS}) n, (select id from sources limit 1) sources`,
    [large, small],
  )
  await client.query(
    `insert into clip_search (clip_id, token_id, created_at, bytes, duration_ms, nsfw, title_key, words, views)
     select id, token_id, created_at, n * 7919 % ${CLIPS}, n % 7, nsfw, search_key(title),
       array_to_tsvector(search_words(title)), n % 5
     from clips, lateral (select substr(id, 2)::integer as n) numbered where id like 'a0%'`,
  )
  await client.query(
    `insert into clip_words (created_at, token_id, clip_id, word)
     select created_at, token_id, clip_id, unnest(tsvector_to_array(words)) from clip_search where clip_id like 'a0%'`,
  )
  await client.query(`set session_replication_role = 'origin'`)
  await client.query('vacuum analyze clips, clip_search, clip_words')
  client.release()
})
afterAll(() => service.close())

const searchFor = (
  words: string,
  { isSmall = false, ...filter }: Partial<Search> & { isSmall?: boolean } = {},
): Search => ({
  ...{
    tokenId: isSmall ? small : large,
    tagKey: undefined,
    state: undefined,
    nsfw: undefined,
    visibility: undefined,
    from: undefined,
    now: new Date(),
    to: undefined,
  },
  ...{ words: words.split(' ').filter(Boolean), ...filter },
})

const matching = ({ words, tokenId, nsfw, from, to }: Search) =>
  CLIP_LIST.filter(
    (clip) =>
      clip.isSmall === (tokenId === small) &&
      words.every((word, at) =>
        clip.words.some((of) => (at === words.length - 1 ? of.startsWith(word) : of === word)),
      ) &&
      (nsfw === undefined || clip.isNsfw === nsfw) &&
      (!from || clip.created >= from.getTime()) &&
      (!to || clip.created < to.getTime()),
  )

const compare = <Key>(one: Key, other: Key) => (one < other ? -1 : one > other ? 1 : 0)

function expected(search: Search, sort: Sort, order: Direction): string[] {
  const ascending = matching(search).toSorted(
    (one, other) => compare<string | number>(one[sort], other[sort]) || compare(one.id, other.id),
  )
  return (order === 'asc' ? ascending : ascending.toReversed()).map(({ id }) => id)
}

const LIMIT = 100

async function allPages(search: Search, sort: Sort, order: Direction, most: number) {
  const ids: string[] = []
  let pages = 0
  for (let after: Position | undefined; pages < most; pages++) {
    const page = await searchClips(service.deps.db, { search, sort, order, after, limit: LIMIT })
    ids.push(...page.ids)
    if (!page.next) return { ids, pages: pages + 1 }
    after = page.next
  }
  return { ids, pages }
}

const at = (n: number) => new Date(START + n * 1000)

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: PlanNode[]
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

async function statementsOf(search: Search, sort: Sort, order: Direction): Promise<CompiledQuery[]> {
  const { pool } = service.deps
  const sent: CompiledQuery[] = []
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool }), log: ({ query }) => void sent.push(query) })
  await searchClips(db, { search, sort, order, after: undefined, limit: LIMIT })
  return sent
}

/** Scans of the tables in all statements of a search. */
async function scansOf(search: Search, sort: Sort, order: Direction): Promise<PlanNode[]> {
  const sent = await statementsOf(search, sort, order)
  const plans: PlanNode[] = []
  const client = await service.deps.pool.connect()
  // Tables of this size are read whole sooner than by an index. The test is whether an index has the order.
  await client.query('begin; set local enable_seqscan = off; set local enable_bitmapscan = off')
  for (const { sql, parameters } of sent) {
    const { rows } = await client.query(`explain (analyze, format json) ${sql}`, [...parameters])
    plans.push(...nodesOf(rows[0]['QUERY PLAN'][0].Plan))
  }
  await client.query('rollback')
  client.release()
  return plans.filter((node) => node['Relation Name'])
}

const SEARCHES: [string, () => Search][] = [
  ['a word that all have', () => searchFor('common')],
  ['a word that half have', () => searchFor('even')],
  ['a word of old clips', () => searchFor('early')],
  ['a rare word', () => searchFor('rare')],
  ['the beginning of very many words', () => searchFor('img')],
  ['the beginning of a few words', () => searchFor('img0123')],
  ['the beginning of several common words', () => searchFor('e')],
  ['two common words', () => searchFor('odd early')],
  ['a common and a rare word', () => searchFor('common rar')],
  ['a common word of a token with few clips', () => searchFor('even', { isSmall: true })],
  ['a word and a time', () => searchFor('common', { from: at(9_000), to: at(15_500) })],
  ['a short time', () => searchFor('', { from: at(9_000), to: at(9_100) })],
  ['few of nsfw', () => searchFor('', { nsfw: true })],
  ['a word that none has', () => searchFor('none')],
  ['two words that no clip has together', () => searchFor('even odd')],
  ['nothing', () => searchFor('')],
]

describe.each(['created', 'bytes'] as const)('among many clips, by %s', (sort) => {
  test.each(SEARCHES)('the pages of %s have all its clips in their order', async (_, make) => {
    const search = make()
    for (const order of ['desc', 'asc'] as const) {
      const wanted = expected(search, sort, order)
      // A search with few matches is read to its end, through pages that are not full.
      const { ids } = await allPages(search, sort, order, wanted.length > 3 * LIMIT ? 3 : 10)
      expect(ids).toEqual(wanted.slice(0, 3 * LIMIT))
    }
  })

  test.each(SEARCHES)('a page of %s reads a bounded number of rows, all by indexes', async (_, make) => {
    for (const order of ['desc', 'asc'] as const) {
      const scans = await scansOf(make(), sort, order)
      expect(scans.map((scan) => scan['Index Name'])).not.toContain(undefined)
      for (const scan of scans) {
        const rows = (scan['Actual Rows'] + (scan['Rows Removed by Filter'] ?? 0)) * scan['Actual Loops']
        expect(rows).toBeLessThanOrEqual(1.02 * MAX_READ)
      }
    }
  })

  test('words that no clip has together end after a few pages', async () => {
    for (const order of ['desc', 'asc'] as const) {
      const { ids, pages } = await allPages(searchFor('even odd'), sort, order, 10)
      expect([ids, pages > 1, pages <= Math.ceil(CLIPS / LEAST_READ)]).toEqual([[], true, true])
    }
  })
})

test.each(['title', 'bytes', 'duration', 'views'] as const)(
  'a list by %s without a filter is walked at once, and no list is counted first',
  async (sort) => {
    for (const isSmall of [true, false]) {
      const search = searchFor('', { isSmall })
      expect(await statementsOf(search, sort, 'asc')).toHaveLength(1)
      expect((await allPages(search, sort, 'asc', 3)).ids).toEqual(expected(search, sort, 'asc').slice(0, 3 * LIMIT))
    }
  },
)
