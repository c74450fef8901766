import { type RawBuilder, sql } from 'kysely'

export interface PasskeyUse {
  id: string
  signCount: number
  backedUp: boolean
}

/**
 * Stores a use of a passkey of the user in `owner`, and returns the user. No row if the passkey is gone, or if both
 * counts are above 0 and the new one is not the higher one.
 */
export const usingPasskey = (
  owner: RawBuilder<unknown>,
  { keyId, signCount, backedUp, now }: Omit<PasskeyUse, 'id'> & { keyId: string; now: Date },
): RawBuilder<unknown> => sql`
    update ${sql.table('passkeys')} passkey
    set sign_count = greatest(sign_count, ${signCount}::bigint), backed_up = ${backedUp}::boolean, last_used_at = ${now}
    from ${owner} owner
    where passkey.id = ${keyId}::uuid and passkey.user_id = owner.id
      and (sign_count = 0 or ${signCount}::bigint = 0 or sign_count < ${signCount}::bigint)
    returning passkey.user_id`
