import { createHmac, type KeyObject } from 'node:crypto'
import { isUniqueViolation } from '@services/common/database/errors'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Transaction } from 'kysely'
import type { SecondMethod } from '../../core/amr/second-methods.ts'
import { recordRefusal } from '../../core/audit/sign-in-attempt.ts'
import { type Challenge, countAttempt } from '../../core/factors/challenges.store.ts'
import { advanceCredential, type Factor, setCredential } from '../../core/factors/factors.store.ts'
import { spendStep } from '../../core/factors/totp.store.ts'
import { stepOfCode } from '../../core/factors/totp.ts'
import { SEALED } from '../../core/keys/sealed-columns.ts'
import { isSameHash } from '../../core/one-time-tokens/one-time-token.ts'
import { typedCode } from '../../core/one-time-tokens/typed-code.ts'
import { FACTOR_CODE_KIND } from '../../core/outbox/outbox.ts'
import type { PasswordAttempt } from '../../core/passwords/password-attempts.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { endLowerSessions, raiseSession } from '../../core/sessions/raise-session.store.ts'
import { NONE } from '../../core/trusted-devices/trusted-devices.store.ts'
import { findUserById, type User } from '../../core/users/users.store.ts'
import { checkAssertion, checkRegistration, isKeyResponse } from '../../core/webauthn/ceremony.ts'
import { reportLock } from '../../core/webhooks/locked-out.ts'
import type { DB, WebauthnChallenge } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { FactorRequest } from './require-factor.ts'

export interface Verification {
  factorId: string
  challengeId: string | undefined
  code: string | undefined
  /** Answer of a security key, not validated yet. */
  webauthn: unknown
  ip: string | null
  acceptLanguage: string | undefined
}

/** Uses the proof up, with the user locked; resolves to false if another request used it first. */
type Spend = (trx: Transaction<DB>) => Promise<boolean>

/** A right proof, or a wrong one; `refused` is the reason that only the log shows, if there is one. */
type Checked = { spend: Spend } | { refused: unknown }

const WRONG: Checked = { refused: undefined }

interface Proof {
  check(challenge: Challenge): Promise<Checked>
  /** Runs an attempt, counted if the proof could be guessed. Resolves to undefined if it was wrong. */
  counted<Result>(attempt: () => Promise<Result | undefined>): Promise<Result | undefined>
  refusal: string
}

/** Reads the proof in the request. Throws validation_failed for a malformed one. */
export function proofOf(deps: Deps, request: FactorRequest, factor: Factor, given: Verification): Proof {
  if (factor.factor_type === 'webauthn') return webauthnProof(factor, given.webauthn)
  const { code } = given
  if (!code) throw apiError('validation_failed', { message: 'Code needs to be non-empty' })
  // A code has a million values: failed attempts double a wait, as for passwords but counted apart.
  const subject = factorAttempt(`factor ${factor.id}`, request)
  return {
    counted: (attempt) => countedAttempt(deps, request.caller.user, subject, attempt),
    ...(factor.factor_type === 'totp' ? totpProof(deps, factor, code) : phoneProof(deps, code)),
  }
}

const totpProof = (deps: Deps, factor: Factor, code: string): Omit<Proof, 'counted'> => ({
  refusal: 'Invalid TOTP code entered',
  async check() {
    const step = await stepOfCode(requireSecret(deps, factor), code, deps.now())
    return step === undefined ? WRONG : { spend: (trx) => spendStep(trx, factor.id, step) }
  },
})

function requireSecret({ log, encryption }: Deps, factor: Factor): string {
  try {
    return encryption.open(SEALED.factorSecret, factor)
  } catch (cause) {
    log.error({ factorId: factor.id, reason: (cause as Error).message }, 'factor unusable: its secret does not decrypt')
    throw apiError('mfa_verification_failed', {
      message: 'This factor can no longer be checked, use another one or a recovery code',
      cause,
    })
  }
}

/** Wrong attempts at one code, of a million possible ones. */
const MAX_PHONE_ATTEMPTS = 5

/** Hashes a code, as typed, with its challenge: it is worth nothing for another. */
export const hashPhoneCode = (codeKey: KeyObject, challengeId: string, code: string): Buffer =>
  createHmac('sha256', codeKey)
    .update(`${FACTOR_CODE_KIND}\0${challengeId}\0${typedCode(code)}`)
    .digest()

/** The code is used up with its challenge, and dies after a few wrong attempts. */
const phoneProof = (deps: Deps, code: string): Omit<Proof, 'counted'> => ({
  refusal: 'Invalid MFA Phone code entered',
  async check({ id, code_hash: codeHash }) {
    const isCounted = codeHash !== null && (await countAttempt(deps.db, id, MAX_PHONE_ATTEMPTS))
    const isRight = isCounted && isSameHash(codeHash, hashPhoneCode(deps.codeKey, id, code))
    return isRight ? { spend: async () => true } : WRONG
  },
})

/**
 * Counters of attempts at a second factor: per client address, or per session where no address is trusted. Sessions
 * that began with a password are counted separately, so a thief with the password delays only those. The owner signs in
 * by link, code or provider and proves the factor at once. All attempts of either kind together are bounded too.
 */
export function factorAttempt(what: string, { caller, proof }: FactorRequest): PasswordAttempt {
  const { id: session, amr } = caller.session
  const begunBy = amr.some(({ method }) => method === 'password') ? 'password' : 'other'
  return { identifier: `${what} ${begunBy}`, address: proof.clientAddress, session }
}

/** Runs an attempt at a second factor, counted as failed if it resolves to undefined. */
export async function countedAttempt<Result>(
  deps: Deps,
  user: Pick<User, 'id'>,
  subject: PasswordAttempt,
  attempt: () => Promise<Result | undefined>,
): Promise<Result | undefined> {
  let result: Result | undefined
  await reportLock(deps, user.id, 'second_factor', () =>
    deps.passwordAttempts.run(subject, async () => {
      result = await attempt()
      return result !== undefined
    }),
  )
  return result
}

/** Records and throws the refusal of a wrong proof. */
export async function refuseProof(
  deps: Deps,
  { log, caller }: FactorRequest,
  { method, message, cause }: { method: string; message: string; cause?: unknown },
): Promise<never> {
  const refusal = apiError('mfa_verification_failed', { message, cause })
  await recordRefusal(deps, log, { method, actor: caller.user }, refusal)
  throw refusal
}

/**
 * Raises the session to aal2, with user and session locked, and ends lower ones and these trusted devices. The
 * previous refresh token stops working, except after a proof at our pages: the caller there has no other token.
 */
export async function raise(
  { now }: Pick<Deps, 'now'>,
  trx: Transaction<DB>,
  { user: { id: userId }, session: { id: sessionId }, isByPages: keepsToken }: LiveCaller,
  { factorId, method }: { factorId: string | null; method: SecondMethod },
  devices = NONE,
) {
  const session = await raiseSession(trx, { userId, sessionId, factorId, method, keepsToken, now: now() })
  if (!session) throw apiError('session_not_found')
  await endLowerSessions(trx, userId, session.id, devices)
  const user = await findUserById(trx, userId)
  if (!user) throw apiError('user_not_found')
  return { session, user }
}

const REFUSAL = 'Invalid WebAuthn credential'

/** Proof by a security key. Signatures cannot be guessed, so attempts are not counted. */
function webauthnProof(factor: Factor, webauthn: unknown): Proof {
  const { type, response } = readAnswer(webauthn)
  return {
    refusal: REFUSAL,
    counted: (attempt) => attempt(),
    async check({ webauthn: challenge }) {
      if (!challenge) return WRONG
      if (challenge.type !== type) throw refused(`The challenge is of type ${challenge.type}`)
      return challenge.type === 'create' ? register(factor, challenge, response) : assert(factor, challenge, response)
    },
  }
}

/**
 * Spending throws mfa_verification_failed for a key of any existing factor, and resolves to false if this one has a
 * key.
 */
async function register(factor: Factor, challenge: WebauthnChallenge, response: unknown): Promise<Checked> {
  const made = await checkRegistration(challenge, response as RegistrationResponseJSON)
  if ('refused' in made) return made
  const spend: Spend = (trx) =>
    setCredential(trx, factor, made.credential).catch((cause) => {
      throw isUniqueViolation(cause) ? apiError('mfa_verification_failed', { message: REFUSAL, cause }) : cause
    })
  return { spend }
}

async function assert(factor: Factor, challenge: WebauthnChallenge, response: unknown): Promise<Checked> {
  const { credential } = factor
  if (!credential) return WRONG
  const key = { ...credential, publicKey: Buffer.from(credential.publicKey, 'base64url') }
  const asserted = await checkAssertion(challenge, key, response as AuthenticationResponseJSON)
  if ('refused' in asserted) return asserted
  const advanced = { ...credential, counter: asserted.counter }
  return { spend: (trx) => advanceCredential(trx, factor, credential, advanced) }
}

function readAnswer(webauthn: unknown): { type: 'create' | 'request'; response: unknown } {
  if (typeof webauthn !== 'object' || webauthn === null) throw refused('WebAuthn config required')
  const { type, credential_response: response } = webauthn as { type?: unknown; credential_response?: unknown }
  if (type !== 'create' && type !== 'request') throw refused('WebAuthn type must be create or request')
  if (response === undefined || response === null) throw refused('credential_response required')
  if (!isKeyResponse(response, type)) throw refused('Invalid credential_response')
  return { type, response }
}

const refused = (message: string) => apiError('validation_failed', { message })
