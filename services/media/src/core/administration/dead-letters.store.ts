import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB, WebhookEvent } from '../../db/tables.ts'

/** Delivery that was given up. */
export interface FailedDelivery {
  id: string
  /** Microseconds since 1970 of its event, as text. */
  at: string
  type: WebhookEvent
  attempts: number
  lastStatus: number | null
  lastError: string | null
  clipId: string | null
  webhookId: string
  url: string
  tokenId: string
}

const failed = sql<boolean>`${sql.ref('webhook_deliveries.state')} = 'failed'`

const selectFailed = (db: Kysely<DB>) =>
  db
    .selectFrom('webhook_deliveries')
    .innerJoin('webhooks', 'webhooks.id', 'webhook_deliveries.webhook_id')
    .where(failed)
    .select([
      'webhook_deliveries.id',
      sql<string>`(extract(epoch from ${sql.ref('webhook_deliveries.created_at')}) * 1000000)::bigint::text`.as('at'),
      'type',
      'attempts',
      'last_status as lastStatus',
      'last_error as lastError',
      sql<string | null>`payload #>> '{data,id}'`.as('clipId'),
      'webhook_id as webhookId',
      'url',
      'token_id as tokenId',
    ])

/** Lists deliveries that were given up, newest event first, after a position. */
export async function listFailedDeliveries(
  db: Kysely<DB>,
  { after, limit }: { after: { at: string; id: string } | undefined; limit: number },
): Promise<FailedDelivery[]> {
  let query = selectFailed(db)
    .orderBy('webhook_deliveries.created_at', 'desc')
    .orderBy('webhook_deliveries.id', 'desc')
    .limit(limit)
  if (after) {
    query = query.where(
      sql<boolean>`(${sql.ref('webhook_deliveries.created_at')}, ${sql.ref('webhook_deliveries.id')}) <
        (timestamptz 'epoch' + ${after.at}::bigint * interval '1 microsecond', ${after.id}::uuid)`,
    )
  }
  return query.execute()
}

export const findFailedDelivery = (db: Kysely<DB>, id: string): Promise<FailedDelivery | undefined> =>
  selectFailed(db).where('webhook_deliveries.id', '=', id).executeTakeFirst()

export async function deleteFailedDelivery(trx: Transaction<DB>, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('webhook_deliveries')
    .where('id', '=', id)
    .where('state', '=', 'failed')
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Names of tokens by their ids. */
export async function findTokenNames(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('api_tokens')
    .select(['id', 'name'])
    .where('id', '=', sql<string>`any(${[...new Set(ids)]}::uuid[])`)
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

export interface SourceAtWork {
  id: string
  /** One of its clips. */
  clipId: string | null
  tokenId: string | null
  progress: number
  worker: string | null
}

/** Sources of jobs, each with its oldest clip that is not deleted. */
export async function findSourcesOfJobs(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, SourceAtWork>> {
  const rows = await db
    .selectFrom('sources')
    .select(['id', 'token_id as tokenId', 'progress', 'worker'])
    .select((eb) =>
      eb
        .selectFrom('clips')
        .select('clips.id')
        .whereRef('clips.source_id', '=', 'sources.id')
        .orderBy('clips.created_at')
        .limit(1)
        .as('clipId'),
    )
    .where('id', '=', sql<string>`any(${[...new Set(ids)]}::uuid[])`)
    .execute()
  return new Map(rows.map((row) => [row.id, row]))
}
