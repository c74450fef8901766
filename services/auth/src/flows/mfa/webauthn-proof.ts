import { isUniqueViolation } from '@services/common/database-errors'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Transaction } from 'kysely'
import { advanceCredential, type Factor, setCredential } from '../../core/factors/factors.store.ts'
import { checkAssertion, checkRegistration, isKeyResponse } from '../../core/factors/webauthn.ts'
import type { DB, StoredCredential, WebauthnChallenge } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Proof, Spend } from './factor-proof.ts'

const REFUSAL = 'Invalid WebAuthn credential'

/** Proof by a security key. Signatures cannot be guessed, so attempts are not counted. */
export function webauthnProof(factor: Factor, webauthn: unknown): Proof {
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
