// Visibility and lifetime of a clip, as its owner chooses them. A private clip without a valid link is not found,
// whatever else is true of it. Tests: access.test.ts, test/endpoints/, test/visibility.test.ts, test/lifetime.test.ts.
import { parseDurationSeconds, SECONDS_OR_DURATION } from '@services/common/config/duration'
import type { Visibility } from '../../db/tables.ts'
import { invalidField, readFlag } from './clip-fields.ts'

export interface Access {
  visibility: Visibility
  expiresAt: Date | null
  /** Seconds from a visit to the new end of the lifetime; null where visits do not extend it. */
  slidingSeconds: number | null
}

/** Requested changes; an absent member changes nothing. */
export interface AccessChanges {
  visibility?: Visibility
  /** Seconds from now, a moment in ISO 8601, or null for ever. */
  lifetime?: number | string | null
  sliding?: boolean
}

/** Names of the fields, as callers send them. */
export const ACCESS_FIELDS = ['visibility', 'expires_in', 'expires_at', 'sliding'] as const

export type RawAccess = Partial<Record<(typeof ACCESS_FIELDS)[number], string | number | boolean>>

export const VISIBILITIES = ['public', 'unlisted', 'private'] as const satisfies Visibility[]

const SHORTEST_SECONDS = 60
/** Five years. */
const LONGEST_SECONDS = 5 * 365.25 * 86_400

export interface AccessRules {
  now: Date
  hasToken: boolean
  longestSeconds: number
}

/** A clip without a token has no owner who could share it or end it, so it stays public and expires. */
export function accessRulesOf(
  { config, now }: { config: { anonymousLifetimeSeconds: number }; now: () => Date },
  tokenId: string | null,
): AccessRules {
  const hasToken = tokenId !== null
  return { now: now(), hasToken, longestSeconds: hasToken ? LONGEST_SECONDS : config.anonymousLifetimeSeconds }
}

/** Throws invalid_field. */
export function cleanAccess(raw: RawAccess, rules: AccessRules): AccessChanges {
  const textOf = (name: keyof RawAccess) => String(raw[name] ?? '').trim()
  const [visibility, expiresIn, expiresAt, sliding] = ACCESS_FIELDS.map(textOf) as [string, string, string, string]
  if (expiresIn && expiresAt) throw invalidField('expires_at', 'cannot be given together with expires_in')
  const changes: AccessChanges = {
    ...(visibility && { visibility: readVisibility(visibility, rules) }),
    ...(expiresIn && { lifetime: readLifetime(expiresIn, rules) }),
    ...(expiresAt && { lifetime: readEnd(expiresAt, rules) }),
    ...(sliding && { sliding: readFlag('sliding', sliding) }),
  }
  if (changes.sliding && !rules.hasToken) throw invalidField('sliding', 'needs a token')
  return changes
}

/** Same for a new clip, which has no lifetime yet. */
export function cleanNewAccess(raw: RawAccess, rules: AccessRules): AccessChanges {
  const changes = cleanAccess(raw, rules)
  if (changes.sliding && !changes.lifetime) throw slidingWithoutEnd()
  return changes
}

/** Throws invalid_field for a clip that shall expire later with each visit, but does not expire. */
export function applyAccess(current: Access & { createdAt: Date }, changes: AccessChanges, now: Date): Access {
  const { visibility = current.visibility, lifetime, sliding = current.slidingSeconds !== null } = changes
  const expiresAt = lifetime === undefined ? current.expiresAt : endOf(lifetime, now)
  if (changes.sliding && !expiresAt) throw slidingWithoutEnd()
  if (!sliding || !expiresAt) return { visibility, expiresAt, slidingSeconds: null }
  const isKept = lifetime === undefined
  const begun = isKept ? current.createdAt : now
  const whole = Math.ceil((expiresAt.getTime() - begun.getTime()) / 1000)
  return { visibility, expiresAt, slidingSeconds: (isKept ? current.slidingSeconds : null) ?? whole }
}

export const isExpired = ({ expiresAt }: Pick<Access, 'expiresAt'>, now: Date): boolean =>
  expiresAt !== null && expiresAt <= now

const endOf = (lifetime: NonNullable<AccessChanges['lifetime']> | null, now: Date): Date | null =>
  typeof lifetime === 'number'
    ? new Date(now.getTime() + lifetime * 1000)
    : lifetime === null
      ? null
      : new Date(lifetime)

const slidingWithoutEnd = () => invalidField('sliding', 'needs expires_in or expires_at')

function readVisibility(text: string, { hasToken }: AccessRules): Visibility {
  const visibility = VISIBILITIES.find((known) => known === text.toLowerCase())
  if (!visibility) throw invalidField('visibility', `must be one of ${VISIBILITIES.join(', ')}`)
  if (visibility === 'private' && !hasToken) throw invalidField('visibility', 'can only be private with a token')
  return visibility
}

function readLifetime(text: string, { hasToken, longestSeconds }: AccessRules): number | null {
  if (text.toLowerCase() === 'never') {
    if (!hasToken) throw invalidField('expires_in', 'can only be never with a token')
    return null
  }
  const seconds = Math.round(parseDurationSeconds(text) ?? 0)
  if (seconds >= SHORTEST_SECONDS && seconds <= longestSeconds) return seconds
  const range = `from ${SHORTEST_SECONDS} seconds to ${Math.floor(longestSeconds)}`
  throw invalidField('expires_in', `must be ${SECONDS_OR_DURATION}, ${range}`)
}

/** Date and time with a zone: without one, each machine would read another moment. */
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/i

function readEnd(text: string, { now, longestSeconds }: AccessRules): string {
  const end = MOMENT.test(text) ? new Date(text) : new Date(Number.NaN)
  const seconds = (end.getTime() - now.getTime()) / 1000
  if (seconds >= SHORTEST_SECONDS && seconds <= longestSeconds) return end.toISOString()
  const range = `from ${SHORTEST_SECONDS} seconds to ${Math.floor(longestSeconds)} from now`
  throw invalidField('expires_at', `must be a time such as 2030-01-31T12:00:00Z, ${range}`)
}
