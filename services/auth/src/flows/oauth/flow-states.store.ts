import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely, Selectable } from 'kysely'
import type { Linking } from '../../core/identities/link-identity.ts'
import { type Pkce, pkceOf } from '../../core/one-time-tokens/pkce.ts'
import type { DB, FlowStatesTable } from '../../db/tables.ts'

export interface FlowState {
  /** `state` sent to the provider and returned by it. */
  id: string
  provider: string
  redirectTo: string
  audience: string
  pkce: Pkce | undefined
  inviteTokenHash: Buffer | null
  linking: Linking | null
  sealed: string
  /** A test of an admin, whose callback begins no session (provider-test.ts). */
  isTest?: boolean
}

/** Stores an attempt; `usedAt`: one that has ended. Returns false if the id was used before. */
export async function insertFlowState(
  db: Kysely<DB>,
  state: FlowState,
  now: Date,
  expiresAt: Date,
  usedAt: Date | null = null,
): Promise<boolean> {
  const inserted = await db
    .insertInto('flow_states')
    .values({
      id: state.id,
      provider: state.provider,
      redirect_to: state.redirectTo,
      aud: state.audience,
      code_challenge: state.pkce?.challenge ?? null,
      code_challenge_method: state.pkce?.method ?? null,
      invite_token_hash: state.inviteTokenHash,
      linking_user_id: state.linking?.userId ?? null,
      linking_session_id: state.linking?.sessionId ?? null,
      sealed: state.sealed,
      is_test: state.isTest ?? false,
      used_at: usedAt,
      expires_at: expiresAt,
      created_at: now,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** An attempt that a callback names; `refusal` says why the callback does not get it. */
export type FoundFlowState = FlowState & { refusal: 'expired' | 'elsewhere' | 'used' | undefined }

/** Uses an attempt up: one callback of its browser gets it. A test is used by any browser, whose refusal ends it. */
export async function takeFlowState(
  db: Kysely<DB>,
  id: string,
  { isSameBrowser }: { isSameBrowser: boolean },
  now: Date,
): Promise<FoundFlowState | undefined> {
  const taken = await db
    .updateTable('flow_states')
    .set({ used_at: now })
    .where('id', '=', id)
    .where('used_at', 'is', null)
    .$if(!isSameBrowser, (update) => update.where('is_test', '=', true))
    .returningAll()
    .executeTakeFirst()
  if (taken) {
    const refusal = !isSameBrowser ? 'elsewhere' : taken.expires_at <= now ? 'expired' : undefined
    return { ...fromRow(taken), refusal }
  }
  const refused = await db.selectFrom('flow_states').selectAll().where('id', '=', id).executeTakeFirst()
  return refused && { ...fromRow(refused), refusal: isSameBrowser || refused.is_test ? 'used' : 'elsewhere' }
}

const fromRow = (row: Selectable<FlowStatesTable>): FlowState => ({
  id: row.id,
  provider: row.provider,
  redirectTo: row.redirect_to,
  audience: row.aud,
  pkce: pkceOf(row),
  inviteTokenHash: row.invite_token_hash,
  linking:
    row.linking_user_id && row.linking_session_id
      ? { userId: row.linking_user_id, sessionId: row.linking_session_id }
      : null,
  sealed: row.sealed,
  isTest: row.is_test,
})

export const deleteExpiredFlowStates = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'flow_states', { column: 'expires_at', before })

/** Replaces the secrets of a used test by its sealed outcome. */
export const saveOutcome = (db: Kysely<DB>, id: string, sealed: string) =>
  db.updateTable('flow_states').set({ sealed }).where('id', '=', id).where('is_test', '=', true).execute()

/** Finds a test whose browser has come back. */
export const findUsedTest = (db: Kysely<DB>, id: string) =>
  db
    .selectFrom('flow_states')
    .select(['id', 'provider', 'sealed'])
    .where('id', '=', id)
    .where('is_test', '=', true)
    .where('used_at', 'is not', null)
    .executeTakeFirst()

export async function isBegun(db: Kysely<DB>, id: string): Promise<boolean> {
  const found = await db.selectFrom('flow_states').select('id').where('id', '=', id).executeTakeFirst()
  return found !== undefined
}
