import { jsonb } from '@services/common/database/pool'
import {
  type Expression,
  expressionBuilder,
  type Insertable,
  type Kysely,
  type Selectable,
  type SqlBool,
  sql,
  type Transaction,
} from 'kysely'
import type { DB, Scope, TokenLimits } from '../../db/tables.ts'

export type ApiToken = Omit<Selectable<DB['api_tokens']>, 'hash'>

export const TOKEN_COLUMNS = [
  'id',
  'name',
  'prefix',
  'scopes',
  'limits',
  'is_bootstrap',
  'created_at',
  'last_used_at',
  'expires_at',
  'revoked_at',
] as const

/** Condition that a token is neither revoked nor expired, in any query that has `api_tokens`. */
export function isLive(now: Date): Expression<SqlBool> {
  const token = expressionBuilder<DB, 'api_tokens'>()
  const lasts = token.or([token('api_tokens.expires_at', 'is', null), token('api_tokens.expires_at', '>', now)])
  return token.and([token('api_tokens.revoked_at', 'is', null), lasts])
}

export async function insertToken(db: Kysely<DB>, token: Insertable<DB['api_tokens']>): Promise<ApiToken> {
  return db.insertInto('api_tokens').values(token).returning(TOKEN_COLUMNS).executeTakeFirstOrThrow()
}

/** Returns undefined for a token that is unknown, expired or revoked. */
export async function findLiveToken(db: Kysely<DB>, hash: Buffer, now: Date): Promise<ApiToken | undefined> {
  return db
    .selectFrom('api_tokens')
    .select(TOKEN_COLUMNS)
    .where('hash', '=', hash)
    .where(isLive(now))
    .executeTakeFirst()
}

/** Scopes and limits of a token; undefined for one that is unknown, expired or revoked. */
export const findTokenRights = (
  db: Kysely<DB>,
  id: string,
  now: Date,
): Promise<Pick<ApiToken, 'scopes' | 'limits'> | undefined> => selectRights(db, id, now).executeTakeFirst()

/** The same; until the transaction ends, changes of the token wait for it, its revocation, and other calls of this. */
export const lockTokenRights = (
  trx: Transaction<DB>,
  id: string,
  now: Date,
): Promise<Pick<ApiToken, 'scopes' | 'limits'> | undefined> =>
  selectRights(trx, id, now).forNoKeyUpdate().executeTakeFirst()

const selectRights = (db: Kysely<DB>, id: string, now: Date) =>
  db.selectFrom('api_tokens').select(['scopes', 'limits']).where('id', '=', id).where(isLive(now))

/** Scopes of those of `ids` that are neither expired nor revoked. */
export async function findScopes(db: Kysely<DB>, ids: readonly string[], now: Date): Promise<Map<string, Scope[]>> {
  const rows = await db
    .selectFrom('api_tokens')
    .select(['id', 'scopes'])
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .where(isLive(now))
    .execute()
  return new Map(rows.map(({ id, scopes }) => [id, scopes]))
}

/** Empty for an unknown token too. */
export async function findTokenLimits(db: Kysely<DB>, id: string): Promise<TokenLimits> {
  const found = await db.selectFrom('api_tokens').select('limits').where('id', '=', id).executeTakeFirst()
  return found?.limits ?? {}
}

/** Writes only when `last_used_at` is older than `staleBefore`: a busy token must not be a busy row. */
export async function recordTokenUse(db: Kysely<DB>, id: string, now: Date, staleBefore: Date): Promise<void> {
  await db
    .updateTable('api_tokens')
    .set({ last_used_at: now })
    .where('id', '=', id)
    .where((where) => where.or([where('last_used_at', 'is', null), where('last_used_at', '<', staleBefore)]))
    .execute()
}

export async function listTokens(db: Kysely<DB>): Promise<ApiToken[]> {
  return db.selectFrom('api_tokens').select(TOKEN_COLUMNS).orderBy('created_at').orderBy('id').execute()
}

/** Lists a page of tokens, newest first. */
export async function listTokensAfter(
  db: Kysely<DB>,
  { after, limit }: { after: { createdAt: Date; id: string } | undefined; limit: number },
): Promise<ApiToken[]> {
  let query = db
    .selectFrom('api_tokens')
    .select(TOKEN_COLUMNS)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
  if (after) {
    query = query.where((column) =>
      column(column.refTuple('created_at', 'id'), '<', column.tuple(after.createdAt, after.id)),
    )
  }
  return query.execute()
}

export const findTokenById = (db: Kysely<DB>, id: string): Promise<ApiToken | undefined> =>
  db.selectFrom('api_tokens').select(TOKEN_COLUMNS).where('id', '=', id).executeTakeFirst()

/** Undefined for a token that is unknown or revoked. */
export const lockToken = (trx: Transaction<DB>, id: string): Promise<ApiToken | undefined> =>
  trx
    .selectFrom('api_tokens')
    .select(TOKEN_COLUMNS)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .forUpdate()
    .executeTakeFirst()

export interface TokenChanges {
  name?: string
  scopes?: Scope[]
  limits?: TokenLimits
  expiresAt?: Date | null
}

/** Changes the given fields. Undefined for a token that is unknown or revoked. */
export async function updateToken(db: Kysely<DB>, id: string, changes: TokenChanges): Promise<ApiToken | undefined> {
  const { name, scopes, limits, expiresAt } = changes
  return db
    .updateTable('api_tokens')
    .set({
      ...(name !== undefined && { name }),
      ...(scopes && { scopes }),
      ...(limits && { limits: jsonb(limits) }),
      ...(expiresAt !== undefined && { expires_at: expiresAt }),
    })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returning(TOKEN_COLUMNS)
    .executeTakeFirst()
}

/** Returns undefined for a token that is unknown or was revoked before. */
export async function revokeToken(db: Kysely<DB>, id: string, now: Date): Promise<ApiToken | undefined> {
  return db
    .updateTable('api_tokens')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returning(TOKEN_COLUMNS)
    .executeTakeFirst()
}

/** Makes this the only bootstrap token, from any replica; an earlier start's expires. A revoked one stays revoked. */
export async function putBootstrapToken(
  db: Kysely<DB>,
  token: Pick<Insertable<DB['api_tokens']>, 'id' | 'prefix' | 'hash' | 'scopes'> | undefined,
  now: Date,
): Promise<void> {
  await db
    .updateTable('api_tokens')
    .set({ expires_at: now })
    .where('is_bootstrap', '=', true)
    .where('expires_at', 'is', null)
    .$if(token !== undefined, (query) => query.where('hash', '!=', (token as { hash: Buffer }).hash))
    .execute()
  if (!token) return
  await db
    .insertInto('api_tokens')
    .values({ ...token, name: 'bootstrap', limits: sql`'{}'::jsonb`, is_bootstrap: true, created_at: now })
    .onConflict((conflict) =>
      conflict.column('hash').doUpdateSet({ expires_at: null }).where('api_tokens.is_bootstrap', '=', true),
    )
    .execute()
}
