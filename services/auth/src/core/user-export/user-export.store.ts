import { PLANNED_EACH_TIME } from '@services/common/database/connection'
import { type Kysely, sql } from 'kysely'
import { isOlder, type Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import type { ListedEntry } from '../audit/list-audit.store.ts'
import { columnsOf, type ListName } from './exported-tables.ts'

/** Where few users have most rows, a plan for any user would walk the table for one who has a few of them. */
const plannedEachTime = sql.raw(PLANNED_EACH_TIME)

/** Lists a user's rows of a table, newest first. */
export async function listOwnRows(db: Kysely<DB>, list: ListName, userId: string, limit: number): Promise<object[]> {
  const columns = sql.join(columnsOf(list).map((column) => sql.ref(column)))
  const { rows } = await sql<object>`
    ${plannedEachTime} select ${columns} from ${sql.table(list)} where user_id = ${userId}
    order by created_at desc limit ${limit}`.execute(db)
  return rows
}

const ENTRIES = sql.table('audit_log_entries')

export type OwnEntry = ListedEntry & { place: string }

/** Lists entries of which the user is the actor or the target, newest first. Each kind is read along its index. */
export async function listOwnEntries(
  db: Kysely<DB>,
  userId: string,
  { after, limit }: { after: Position | undefined; limit: number },
): Promise<OwnEntry[]> {
  const actor = sql`payload ->> 'actor_id'`
  const isNext = after ? sql`and ${isOlder(after)}` : sql``
  const columns = sql`id, payload, created_at, ip_address`
  const newest = sql`order by created_at desc, id limit ${sql.lit(limit)}`
  const { rows } = await sql<OwnEntry>`
    ${plannedEachTime} select ${columns}, created_at::text as place from (
      (select ${columns} from ${ENTRIES} where ${actor} = ${userId} ${isNext} ${newest})
      union all
      (select ${columns} from ${ENTRIES} where payload -> 'traits' ->> 'user_id' = ${userId} and ${actor} <> ${userId}
        ${isNext} ${newest})) own
    ${newest}`.execute(db)
  return rows
}
