import { isUniqueViolation } from '@services/common/database/errors'
import type { Transaction } from 'kysely'
import { audit } from '../../core/audit/audit.ts'
import type { RefusalLog } from '../../core/audit/sign-in-attempt.ts'
import { type GivenProof, performActs, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import { notify } from '../../core/outbox/notify.ts'
import { nameOfAuthenticator } from '../../core/passkeys/aaguid-names.ts'
import { type Bound, makeChallenge, takeChallenge, toChallengeBody } from '../../core/passkeys/challenges.ts'
import { toPasskeyBody } from '../../core/passkeys/passkey-shape.ts'
import { insertPasskey, listPasskeys, type Passkey } from '../../core/passkeys/passkeys.store.ts'
import { type LiveCaller, withLockedCaller } from '../../core/sessions/caller.ts'
import { provenUser } from '../../core/users/proven-addresses.ts'
import type { User } from '../../core/users/users.store.ts'
import { checkRegistration, creationOptions, isKeyResponse, type NewKey } from '../../core/webauthn/ceremony.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** Request of a user about their own passkeys. */
export interface PasskeyRequest {
  log: RefusalLog
  caller: LiveCaller
  proof: GivenProof
  acceptLanguage: string | undefined
}

export interface CeremonyAnswer {
  challengeId: string | undefined
  /** Answer of the browser, not validated yet. */
  credential: unknown
}

/** Session that asked, so that a challenge ends with it. */
const boundTo = ({ user, session }: LiveCaller): Bound => ['registration', user.id, session.id]

/** Begins a registration, with second factor and freshness required (contract/auth-external.md 8.2). */
export async function beginRegistration(deps: Deps, request: PasskeyRequest) {
  const { caller } = request
  const known = await performActs(
    deps,
    request,
    ['adding a passkey'],
    (trx, user) => requireCapacity(deps, trx, user),
    async (_, __, passkeys) => passkeys,
  )
  const made = makeChallenge(deps, boundTo(caller))
  const { challengeSeconds, party } = deps.config.passkeys
  const { challenge } = made
  const question = { ...party, challenge, timeoutSeconds: challengeSeconds, residentKey: 'required' } as const
  const { id, email, phone, user_metadata: data } = provenUser(caller.user)
  const owner = ownerFrom(id, email || phone || id, data)
  const { excludeCredentials, ...options } = await creationOptions(question, owner, known.map(toKnown))
  return toChallengeBody(made, { ...options, ...(known.length > 0 && { excludeCredentials }) })
}

const toKnown = ({ credential_id: id, transports }: Passkey) => ({ id, transports })

/** Owner of a new key, shown by the name in the user's data, else by `name`. */
export const ownerFrom = (id: string, name: string, data: Metadata) => ({
  id,
  name,
  displayName: nameIn(data) ?? name,
})

export const nameIn = ({ name }: Metadata): string | undefined =>
  typeof name === 'string' && name !== '' ? name : undefined

/** Ends a registration: stores the key as the user's passkey. */
export async function completeRegistration(deps: Deps, request: PasskeyRequest, answer: CeremonyAnswer) {
  const { caller, log, acceptLanguage } = request
  requireSecondFactor(deps, ['adding a passkey'], caller.user, caller.session)
  await requireCapacity(deps, deps.db, caller.user)
  const { challengeId, credential } = requireAnswer(answer)
  const challenge = await takeChallenge(deps, boundTo(caller), challengeId)
  const key = await requireNewKey(deps, challenge, credential)
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    requireSecondFactor(deps, ['adding a passkey'], user, session)
    await requireCapacity(deps, trx, user)
    const passkey = await storePasskey(deps, trx, user.id, key)
    await audit(deps, trx, log, { action: 'passkey_created', actor: user, traits: { passkey_id: passkey.id } })
    const details = { Passkey: passkey.friendly_name }
    await notify(deps, trx, user, 'passkey_added_notification', details, { acceptLanguage })
    const { id, friendly_name, created_at } = toPasskeyBody(passkey)
    return { id, friendly_name, created_at }
  })
}

/** Lists the user's passkeys. Throws too_many_passkeys if none may be added. */
async function requireCapacity({ config }: Deps, db: Deps['db'] | Transaction<DB>, user: Pick<User, 'id'>) {
  const passkeys = await listPasskeys(db, user.id)
  if (passkeys.length >= config.passkeys.maxPerUser) throw apiError('too_many_passkeys')
  return passkeys
}

/** Validates the members of an answer. Throws validation_failed. */
export function requireAnswer({ challengeId = '', credential }: CeremonyAnswer) {
  if (challengeId === '') throw invalid('challenge_id is required')
  if (credential === undefined || credential === null) throw invalid('credential is required')
  if (!UUID.test(challengeId)) throw invalid('challenge_id must be a valid UUID')
  return { challengeId, credential }
}

const invalid = (message: string) => apiError('validation_failed', { message })

export async function requireNewKey({ config }: Deps, challenge: Buffer, credential: unknown): Promise<NewKey> {
  if (!isKeyResponse(credential, 'create')) throw malformedCredential()
  const ceremony = { ...config.passkeys.party, challenge: challenge.toString('base64url') }
  const key = await checkRegistration(ceremony, credential)
  if ('refused' in key) throw apiError('webauthn_verification_failed', { cause: key.refused })
  return key
}

export const malformedCredential = () =>
  apiError('webauthn_verification_failed', { message: 'Invalid credential response' })

/** Stores a passkey, with the user locked. Throws webauthn_credential_exists for anyone's key. */
export async function storePasskey(deps: Deps, trx: Transaction<DB>, userId: string, key: NewKey): Promise<Passkey> {
  const { credential, attestation, isUserVerified, isBackupEligible, isBackedUp } = key
  const passkey = {
    id: deps.newId(),
    user_id: userId,
    credential_id: credential.id,
    public_key: Buffer.from(credential.publicKey, 'base64url'),
    friendly_name: nameOfAuthenticator(credential.aaguid),
    attestation,
    aaguid: credential.aaguid,
    sign_count: credential.counter,
    transports: credential.transports,
    backup_eligible: isBackupEligible,
    backed_up: isBackedUp,
    user_verified: isUserVerified,
    warned_at: null,
    last_used_at: null,
    created_at: deps.now(),
  }
  await insertPasskey(trx, passkey).catch((cause) => {
    throw isUniqueViolation(cause) ? apiError('webauthn_credential_exists', { cause }) : cause
  })
  return passkey
}
