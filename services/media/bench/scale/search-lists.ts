import type { MeasuredList } from '@services/common/bench/lists'
import { idOfToken, type Loaded, OWNER_ID, OWNER_TOKEN } from './load-clips.ts'

/** Bound of the p99 of searches and sorted lists. */
const BOUND_MS = 50

/** Housekeeping has not yet deleted some of the expired clips. */
export const NOT_EXPIRED = '(expires_at is null or expires_at > now())'

const ORDERS = {
  created: 'clips.created_at',
  title: `lower(coalesce(title, '')) collate "C"`,
  bytes: 'sources.bytes',
  duration: `(info ->> 'durationSeconds')::numeric`,
}

/** Searches, with the condition of the clips of load-clips.ts that they find. */
const SEARCHES: [id: string, q: string, condition: string][] = [
  ['all', 'clip', 'true'],
  ['half', 'funny', `tags @> array['Funny']`],
  ['few', 'rare', `tags @> array['Rare']`],
  ['old', 'old', `tags @> array['Old']`],
  ['elsewhere', 'elsewhere', `tags @> array['Elsewhere']`],
  ['unused', 'unused', 'false'],
  ['number', 'number 12345', `title like '% 12345%'`],
  ['digit', '7', `title like '% 7%'`],
  ['two', 'funny elsewhere', `tags @> array['Funny', 'Elsewhere']`],
  ['apart', 'funny cats', 'false'],
]

/** Searches and sorts through GET /media: of all clips, of the largest token and of a small one. */
export function searchLists(loaded: Loaded, adminToken: string, idsOf: MeasuredList['idsOf']): MeasuredList[] {
  const owners = [
    { id: 'all', what: 'all clips', headers: { token: adminToken }, query: '', condition: 'true' },
    { id: 'owner', what: 'the largest token', headers: { token: OWNER_TOKEN }, query: '', condition: isOf(OWNER_ID) },
    {
      ...{ id: 'token', what: 'a small token', headers: { token: adminToken } },
      ...{ query: `&token=${idOfToken(2)}`, condition: isOf(idOfToken(2)) },
    },
  ]
  const list = (id: string, query: string, condition: string, sort: keyof typeof ORDERS, order: 'asc' | 'desc') =>
    owners.map(
      (owner): MeasuredList => ({
        id: `${owner.id}-${id}`,
        what: `GET /media?${query} of ${owner.what}`,
        headers: owner.headers,
        paths: [`/media?${query}${owner.query}`],
        // A search drops expired clips from its page, which is then shorter.
        rows: `select id from (select clips.id, expires_at from clips join sources on sources.id = source_id
          where deleted_at is null and ${owner.condition} and ${condition}
          order by ${ORDERS[sort]} ${order}, clips.id ${order} limit 50) page where ${NOT_EXPIRED}`,
        boundMs: BOUND_MS,
        idsOf,
      }),
    )
  const [from, to] = [100, 70].map((days) => new Date(loaded.newest.getTime() - days * 86_400_000).toISOString())
  return [
    ...(['title', 'bytes', 'duration'] as const).flatMap((sort) =>
      (['asc', 'desc'] as const).flatMap((order) =>
        list(`${sort}-${order}`, `sort=${sort}&order=${order}`, 'true', sort, order),
      ),
    ),
    ...list('created-asc', 'order=asc', NOT_EXPIRED, 'created', 'asc'),
    ...SEARCHES.flatMap(([id, q, condition]) =>
      list(`q-${id}`, `q=${q.replace(' ', '+')}`, condition, 'created', 'desc'),
    ),
    ...(['title', 'bytes', 'duration'] as const).flatMap((sort) =>
      SEARCHES.filter(([id]) => ['half', 'few', 'number'].includes(id)).flatMap(([id, q, condition]) =>
        list(`q-${id}-${sort}`, `q=${q.replace(' ', '+')}&sort=${sort}&order=desc`, condition, sort, 'desc'),
      ),
    ),
    ...list(
      'range-bytes',
      `from=${from}&to=${to}&sort=bytes&order=asc`,
      `clips.created_at >= '${from}' and clips.created_at < '${to}'`,
      'bytes',
      'asc',
    ),
  ]
}

const isOf = (tokenId: string) => `clips.token_id = '${tokenId}'`
