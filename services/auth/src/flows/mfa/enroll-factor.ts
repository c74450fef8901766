import type { Transaction } from 'kysely'
import { type Static, Type } from 'typebox'
import { audit } from '../../core/audit/audit.ts'
import { requireShortName } from '../../core/factors/factor-name.ts'
import { deleteFactors, type Factor, insertFactor, listFactors } from '../../core/factors/factors.store.ts'
import { removeFactor } from '../../core/factors/remove-factor.ts'
import { makeTotp } from '../../core/factors/totp.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { performActs, requireFresh, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import { SEALED } from '../../core/keys/sealed-columns.ts'
import { type LiveCaller, withLockedCaller } from '../../core/sessions/caller.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import type { User } from '../../core/users/users.store.ts'
import type { DB, FactorType } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { type FactorRequest, requireCapacity, requireEnabled, requireFactor, tooManyFactors } from './require-factor.ts'

export interface Enrollment {
  factorType: string | undefined
  friendlyName: string | undefined
  issuer: string | undefined
  phone: string | undefined
}

export const EnrolledFactor = Type.Object({
  id: Type.String({ format: 'uuid' }),
  type: Type.String(),
  friendly_name: Type.String(),
  phone: Type.Optional(Type.String()),
  totp: Type.Optional(
    Type.Object({
      qr_code: Type.String({ description: 'An SVG document.' }),
      secret: Type.String({ description: 'Base32, for typing in.' }),
      uri: Type.String(),
    }),
  ),
})

const TYPES: readonly string[] = ['totp', 'phone', 'webauthn'] satisfies FactorType[]

/** Authenticator apps show the issuer beside each code. */
const MAX_ISSUER_LENGTH = 100

/** Enrolls a factor, which counts once it is verified. Order of checks: contract/auth-external.md 4.2. */
export async function enrollFactor(
  deps: Deps,
  { log, caller, proof }: FactorRequest,
  { factorType, friendlyName = '', issuer, phone }: Enrollment,
): Promise<Static<typeof EnrolledFactor>> {
  const type = parseType(factorType)
  requireEnabled(deps.config.mfa, type, 'enroll')
  const number = type === 'phone' ? parseNumber(phone) : undefined
  requireShortName(friendlyName)
  requireShortIssuer(issuer)
  // Before the password, whose refusal reveals a wrong guess. A nonce stays valid for the proof that follows.
  requireSecondFactor(deps, ['beginning a factor'], caller.user, caller.session)
  await requireFresh(deps, caller, ['beginning a factor'], proof)
  const totp = type === 'totp' ? await newTotp(deps, caller, issuer) : undefined
  const id = deps.newId()
  await withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const kept = await dropReplaced(deps, trx, user.id, number)
    requireFree(deps, kept, user, friendlyName)
    requireSecondFactor(deps, ['beginning a factor'], user, session)
    const now = deps.now()
    const sealed = totp ? deps.encryption.seal(SEALED.factorSecret, { id, user_id: user.id }, totp.secret) : null
    const secrets = { phone: number ?? null, sealed_secret: sealed }
    const names = { id, user_id: user.id, factor_type: type, friendly_name: friendlyName, session_id: session.id }
    await insertFactor(trx, { ...names, ...secrets, created_at: now, updated_at: now })
    const traits = { factor_id: id, factor_type: type }
    await audit(deps, trx, log, { action: 'factor_in_progress', actor: user, traits })
  })
  return {
    id,
    type,
    friendly_name: friendlyName,
    ...(number ? { phone: `+${number}` } : {}),
    ...(totp ? { totp: { qr_code: totp.qrCode, secret: totp.secret, uri: totp.uri } } : {}),
  }
}

function parseType(type: string | undefined): FactorType {
  if (type && TYPES.includes(type)) return type as FactorType
  throw apiError('validation_failed', { message: 'factor_type needs to be totp, phone, or webauthn' })
}

function parseNumber(phone: string | undefined): string {
  if (!phone) throw apiError('validation_failed', { message: 'Phone number required to enroll Phone factor' })
  return parsePhone(phone)
}

function requireShortIssuer(issuer = ''): void {
  if (issuer.length <= MAX_ISSUER_LENGTH) return
  throw apiError('validation_failed', { message: `issuer must be at most ${MAX_ISSUER_LENGTH} characters` })
}

/** Makes a TOTP secret. The app shows it as the site and the user's address. */
function newTotp(deps: Deps, { user }: LiveCaller, issuer: string | undefined) {
  const account = user.email || (user.phone ? `+${user.phone}` : user.id)
  return makeTotp(deps, { issuer: issuer || new URL(deps.config.siteUrl).host || 'site', account })
}

/** Deletes abandoned factors and unverified ones of the same number, and returns the others. */
async function dropReplaced(deps: Deps, trx: Transaction<DB>, userId: string, phone: string | undefined) {
  const factors = await listFactors(trx, userId)
  const sameNumber = factors.filter((factor) => phone !== undefined && factor.phone === phone)
  if (sameNumber.some(({ status }) => status === 'verified')) {
    throw apiError('mfa_verified_factor_exists', {
      message: 'A verified phone factor already exists, unenroll the existing factor to continue',
    })
  }
  const staleSince = new Date(deps.now().getTime() - deps.config.mfa.unverifiedSeconds * 1000)
  const isStale = ({ status, created_at: began, last_challenged_at: tried }: Factor) =>
    status === 'unverified' && began < staleSince && (tried === null || tried < staleSince)
  const dropped = factors.filter((factor) => sameNumber.includes(factor) || isStale(factor))
  const ids = dropped.map(({ id }) => id)
  await deleteFactors(trx, userId, ids)
  return factors.filter((factor) => !dropped.includes(factor))
}

function requireFree({ config }: Deps, factors: Factor[], user: Pick<User, 'factors'>, friendlyName: string) {
  const codes = (user.factors ?? []).filter(({ factor_type: type }) => type === 'recovery_code')
  if ([...factors, ...codes].some((factor) => factor.friendly_name === friendlyName)) {
    throw apiError('mfa_factor_name_conflict', {
      message: `A factor with the friendly name "${friendlyName}" for this user already exists`,
    })
  }
  if (factors.length >= config.mfa.maxEnrolled) throw tooManyFactors()
  requireCapacity(config, factors)
}

/** Removes a factor (contract/auth-external.md 4.5). */
export async function unenrollFactor(
  deps: Deps,
  request: FactorRequest,
  factorId: string,
  acceptLanguage: string | undefined,
): Promise<{ id: string }> {
  const { log, caller } = request
  const found = await requireFactor(deps.db, caller.user, factorId)
  const find = async (trx: Transaction<DB>) => {
    const factor = await requireFactor(trx, caller.user, found.id)
    // Verified meanwhile: the caller asked to remove an unverified one.
    if (factor.status !== found.status) throw apiError('conflict', { message: 'The factor was proven meanwhile' })
    return factor
  }
  // An unverified factor protects nothing, so its removal needs no proof.
  const acts: ActName[] = found.status === 'verified' ? ['removing a proven factor'] : []
  return performActs(deps, request, acts, find, async (trx, user, factor) => {
    await removeFactor(deps, trx, user, factor, acceptLanguage)
    const traits = { factor_id: factor.id, factor_type: factor.factor_type, factor_status: factor.status }
    await audit(deps, trx, log, { action: 'factor_unenrolled', actor: user, traits })
    return { id: factor.id }
  })
}
