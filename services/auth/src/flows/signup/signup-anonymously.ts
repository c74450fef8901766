import type { SessionBody } from '../../core/sessions/session-shape.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import { blankUser } from '../../core/users/blank-user.ts'
import { requireModestMetadata } from '../../core/users/metadata.ts'
import { withoutFacts } from '../../core/users/proven-addresses.ts'
import { insertUser } from '../../core/users/users.store.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { countSignUp } from '../../metrics.ts'

/** Signs a new user without an address in; they can add one later. The caller has checked that anonymous users are enabled. */
export async function signUpAnonymously(
  deps: Deps,
  { data, audience, client }: { data: Metadata; audience: string; client: Client },
): Promise<SessionBody> {
  if (deps.config.signup.disabled) throw apiError('signup_disabled')
  requireModestMetadata(data)
  const blank = blankUser(deps.newId(), audience, deps.config.jwt.defaultRole, deps.now())
  const user = { ...blank, is_anonymous: true, user_metadata: withoutFacts(data) }
  const session = await deps.db.transaction().execute(async (trx) => {
    const { identities: _none, confirmed_at: _generated, ...row } = user
    await insertUser(trx, { ...row, password_hash: null })
    return startSession(deps, trx, user, 'anonymous', client)
  })
  countSignUp('anonymous')
  return session
}
