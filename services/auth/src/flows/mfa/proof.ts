import { countAttempt } from '../../core/factors/challenges.store.ts'
import { type Factor, spendStep } from '../../core/factors/factors.store.ts'
import { hashPhoneCode, MAX_PHONE_ATTEMPTS } from '../../core/factors/phone-code.ts'
import { openTotpSecret, stepOfCode } from '../../core/factors/totp.ts'
import { isSameHash } from '../../core/one-time-tokens/one-time-token.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { Proof, Verification } from './factor-proof.ts'
import { secondFactorTry } from './second-factor-try.ts'
import { webauthnProof } from './webauthn-proof.ts'

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
      const isTry = codeHash !== null && (await countAttempt(deps.db, id, MAX_PHONE_ATTEMPTS))
      const isRight = isTry && isSameHash(codeHash, hashPhoneCode(deps.codeKey, id, code))
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
    limits.passwordTry(secondFactorTry(`factor ${factor.id}`, session, proof.clientAddress), attempt)
