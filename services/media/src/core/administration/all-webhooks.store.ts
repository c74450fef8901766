import type { Kysely } from 'kysely'
import type { DB, WebhookEvent } from '../../db/tables.ts'

export interface ListedWebhook {
  id: string
  createdAt: Date
  url: string
  events: WebhookEvent[]
  failures: number
  failingSince: Date | null
  disabledAt: Date | null
  tokenId: string
  tokenName: string
}

/** Lists webhooks of all tokens, newest first; `isFailing`: those that fail or are disabled. */
export async function listAllWebhooks(
  db: Kysely<DB>,
  { isFailing }: { isFailing: boolean },
  { after, limit }: { after: { createdAt: Date; id: string } | undefined; limit: number },
): Promise<ListedWebhook[]> {
  let query = db
    .selectFrom('webhooks')
    .innerJoin('api_tokens', 'api_tokens.id', 'webhooks.token_id')
    .select(['webhooks.id', 'webhooks.created_at as createdAt', 'url', 'events', 'failures'])
    .select(['failing_since as failingSince', 'disabled_at as disabledAt', 'token_id as tokenId', 'name as tokenName'])
    .orderBy('webhooks.created_at', 'desc')
    .orderBy('webhooks.id', 'desc')
    .limit(limit)
  if (isFailing) {
    query = query.where((where) => where.or([where('failures', '>', 0), where('disabled_at', 'is not', null)]))
  }
  if (after) {
    query = query.where((column) =>
      column(column.refTuple('webhooks.created_at', 'webhooks.id'), '<', column.tuple(after.createdAt, after.id)),
    )
  }
  return query.execute()
}
