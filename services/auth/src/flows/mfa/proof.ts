import { isUniqueViolation } from '@services/common/database-errors'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Transaction } from 'kysely'
import { type Challenge, countAttempt } from '../../core/factors/challenges.store.ts'
import { advanceCredential, type Factor, setCredential, spendStep } from '../../core/factors/factors.store.ts'
import { hashPhoneCode, MAX_PHONE_ATTEMPTS } from '../../core/factors/phone-code.ts'
import { openTotpSecret, stepOfCode } from '../../core/factors/totp.ts'
import { checkAssertion, checkRegistration, isKeyResponse } from '../../core/factors/webauthn.ts'
import type { GivenProof } from '../../core/freshness/require-fresh.ts'
import type { PasswordAttempt } from '../../core/limits/password-attempts.ts'
import { isSameHash } from '../../core/one-time-tokens/one-time-token.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { DB, StoredCredential, WebauthnChallenge } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

export interface Verification {
  factorId: string
  challengeId: string | undefined
  code: string | undefined
  /** Answer of a security key, not validated yet. */
  webauthn: unknown
  ip: string | null
  proof: GivenProof
  acceptLanguage: string | undefined
}

/** Uses the proof up, with the user locked; resolves to false if another request used it first. */
type Spend = (trx: Transaction<DB>) => Promise<boolean>

interface Proof {
  /** Resolves to undefined for a wrong proof. */
  check(challenge: Challenge): Promise<Spend | undefined>
  /** Runs a check, counted as an attempt if the proof could be guessed. Resolves to whether it was right. */
  counted(attempt: () => Promise<boolean>): Promise<boolean>
  refusal: string
}

/** Reads the proof in the request. Throws validation_failed for a malformed one. */
export function proofOf(deps: Deps, caller: LiveCaller, factor: Factor, given: Verification): Proof {
  switch (factor.factor_type) {
    case 'totp':
      return totpProof(deps, caller, factor, given)
    case 'phone':
      return phoneProof(deps, caller, factor, given)
    case 'webauthn':
      return webauthnProof(factor, given.webauthn)
  }
}

function totpProof(deps: Deps, caller: LiveCaller, factor: Factor, given: Verification): Proof {
  const code = requireCode(given)
  return {
    refusal: 'Invalid TOTP code entered',
    counted: guessed(deps, caller, factor, given),
    async check() {
      const step = await stepOfCode(requireSecret(deps, factor), code, deps.now())
      return step === undefined ? undefined : (trx) => spendStep(trx, factor.id, step)
    },
  }
}

function requireSecret({ log, storageKey }: Deps, factor: Factor): string {
  const secret = openTotpSecret(storageKey, factor.sealed_secret ?? '')
  if (secret) return secret
  log.error({ factorId: factor.id }, 'factor unusable: its secret is sealed under another AUTH_ENCRYPTION_KEY')
  throw apiError('mfa_verification_failed', {
    message: 'This factor can no longer be checked, use another one or a recovery code',
  })
}

/** The code is used up with its challenge, and dies after a few wrong attempts. */
function phoneProof(deps: Deps, caller: LiveCaller, factor: Factor, given: Verification): Proof {
  const code = requireCode(given)
  return {
    refusal: 'Invalid MFA Phone code entered',
    counted: guessed(deps, caller, factor, given),
    async check({ id, code_hash: codeHash }) {
      const isCounted = codeHash !== null && (await countAttempt(deps.db, id, MAX_PHONE_ATTEMPTS))
      const isRight = isCounted && isSameHash(codeHash, hashPhoneCode(deps.codeKey, id, code))
      return isRight ? async () => true : undefined
    },
  }
}

function requireCode({ code }: Verification): string {
  if (!code) throw apiError('validation_failed', { message: 'Code needs to be non-empty' })
  return code
}

/** A code has a million values: failed attempts double a wait, as for passwords but counted apart. */
const guessed =
  ({ limits }: Deps, { session }: LiveCaller, factor: Factor, { proof }: Verification): Proof['counted'] =>
  (attempt) =>
    limits.attemptPassword(factorAttempt(`factor ${factor.id}`, session, proof.clientAddress), attempt)

/**
 * Counters of attempts at a second factor: per client address, or per session where no address is trusted. Sessions
 * that began with a password are counted separately, so a thief with the password delays only those. The owner signs in
 * by link, code or provider and proves the factor at once. All attempts of either kind together are bounded too.
 */
export const factorAttempt = (
  what: string,
  { id, amr }: LiveCaller['session'],
  clientAddress: string | undefined,
): PasswordAttempt => ({
  identifier: `${what} ${beganBy(amr)}`,
  address: clientAddress,
  session: id,
})

const beganBy = (amr: LiveCaller['session']['amr']): string =>
  amr.some(({ method }) => method === 'password') ? 'password' : 'other'

const REFUSAL = 'Invalid WebAuthn credential'

/** Proof by a security key. Signatures cannot be guessed, so attempts are not counted. */
function webauthnProof(factor: Factor, webauthn: unknown): Proof {
  const { type, response } = readAnswer(webauthn)
  return {
    refusal: REFUSAL,
    counted: (attempt) => attempt(),
    async check({ webauthn: asked }) {
      if (!asked) return undefined
      if (asked.type !== type)
        throw apiError('validation_failed', { message: `The challenge is of type ${asked.type}` })
      return asked.type === 'create' ? register(factor, asked, response) : assert(factor, asked, response)
    },
  }
}

async function register(factor: Factor, asked: WebauthnChallenge, response: unknown): Promise<Spend | undefined> {
  const credential = await checkRegistration(asked, response as RegistrationResponseJSON)
  return credential && ((trx) => keepNew(trx, factor, credential))
}

/** Resolves to false if the factor was verified meanwhile. Throws mfa_verification_failed for a key of any existing factor. */
async function keepNew(trx: Transaction<DB>, factor: Factor, credential: StoredCredential): Promise<boolean> {
  try {
    return await setCredential(trx, factor, credential)
  } catch (error) {
    if (isUniqueViolation(error)) throw apiError('mfa_verification_failed', { message: REFUSAL, cause: error })
    throw error
  }
}

async function assert(factor: Factor, asked: WebauthnChallenge, response: unknown): Promise<Spend | undefined> {
  const { credential } = factor
  const advanced = credential && (await checkAssertion(asked, credential, response as AuthenticationResponseJSON))
  return advanced ? (trx) => advanceCredential(trx, factor, credential, advanced) : undefined
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
