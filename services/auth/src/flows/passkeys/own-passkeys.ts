import type { Transaction } from 'kysely'
import { audit } from '../../core/audit/audit.ts'
import { performActs } from '../../core/freshness/require-fresh.ts'
import { hasWayInBesides } from '../../core/identities/ways-in.ts'
import { notify } from '../../core/outbox/notify.ts'
import { passkeyNotFound, requirePasskey, toPasskeyBody } from '../../core/passkeys/passkey-shape.ts'
import { listPasskeys, renamePasskey } from '../../core/passkeys/passkeys.store.ts'
import { removePasskey } from '../../core/passkeys/remove-passkey.ts'
import { withLockedCaller } from '../../core/sessions/caller.ts'
import type { DB } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { PasskeyRequest } from './register-passkey.ts'

const MAX_NAME_CHARACTERS = 120

export async function renameOwnPasskey(deps: Deps, { caller, log }: PasskeyRequest, id: string, given: string) {
  const name = given.trim()
  if (name === '') throw apiError('validation_failed', { message: 'friendly_name is required' })
  if ([...name].length > MAX_NAME_CHARACTERS) {
    const message = `friendly_name must be ${MAX_NAME_CHARACTERS} characters or less`
    throw apiError('validation_failed', { message })
  }
  if (!UUID.test(id)) throw passkeyNotFound()
  return withLockedCaller(deps, caller, async (trx, { user }) => {
    const renamed = await renamePasskey(trx, user.id, id, name)
    if (!renamed) throw passkeyNotFound()
    await audit(deps, trx, log, { action: 'passkey_updated', actor: user, traits: { passkey_id: renamed.id } })
    return toPasskeyBody(renamed)
  })
}

/** Removes a passkey with the other sessions that it started, but not the last way in. */
export async function deleteOwnPasskey(deps: Deps, request: PasskeyRequest, id: string): Promise<void> {
  const { caller, log, acceptLanguage } = request
  requirePasskey(await listPasskeys(deps.db, caller.user.id), id)
  const find = async (trx: Transaction<DB>) => requirePasskey(await listPasskeys(trx, caller.user.id), id)
  await performActs(deps, request, ['removing a passkey'], find, async (trx, user, passkey) => {
    if (!(await hasWayInBesides(deps, trx, user, { passkeyId: passkey.id }))) {
      throw apiError('single_identity_not_deletable', { message: 'The last way to sign in cannot be deleted' })
    }
    await removePasskey(trx, passkey, caller.session.id)
    await audit(deps, trx, log, { action: 'passkey_deleted', actor: user, traits: { passkey_id: passkey.id } })
    const details = { Passkey: passkey.friendly_name }
    await notify(deps, trx, user, 'passkey_removed_notification', details, { acceptLanguage })
  })
}
