import { parseDurationSeconds, SECONDS_OR_DURATION } from '@services/common/config/duration'
import { UsageError } from '@services/common/process/command-line'
import { ALL_SCOPES } from '../../core/tokens/scopes.ts'
import type { TokenChanges } from '../../core/tokens/tokens.store.ts'
import { type Scope, TOKEN_LIMITS, type TokenLimits } from '../../db/tables.ts'

export const LIMITS_EXAMPLE = 'upload=1000,import=500,read=5000,queued=20,quota_bytes=20G,daily_bytes=5G'

/** A hundred years: a later date is not valid everywhere. */
const LONGEST_LIFE_SECONDS = 876_000 * 3600

/** Reads the options that are given. Throws UsageError. */
export function readTokenOptions(
  options: { [Name in 'name' | 'scopes' | 'limits' | 'expires']?: string | undefined },
  now: Date,
): TokenChanges {
  const { name, scopes, limits, expires } = options
  return {
    ...(name?.trim() && { name: name.trim() }),
    ...(scopes !== undefined && { scopes: readScopes(scopes) }),
    ...(limits !== undefined && { limits: readLimits(limits) }),
    ...(expires !== undefined && { expiresAt: readEnd(expires, now) }),
  }
}

function readScopes(text: string): Scope[] {
  const scopes = listOf(text)
  if (scopes.length > 0 && scopes.every(isScope)) return scopes
  throw new UsageError(`--scopes must be some of ${ALL_SCOPES.join(', ')}`)
}

const UNITS: Record<string, number> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 }

function readLimits(text: string): TokenLimits {
  if (text.trim() === 'none') return {}
  return Object.fromEntries(listOf(text).map(readLimit))
}

function readLimit(entry: string): [string, number] {
  const [, name = '', number, unit = ''] = /^([a-z_]+)=([1-9]\d{0,8})([KMGT]?)$/.exec(entry) ?? []
  const isKnown = TOKEN_LIMITS.some((known) => known === name) && (unit === '' || name.endsWith('_bytes'))
  const value = Number(number) * (UNITS[unit] ?? 1)
  if (isKnown && Number.isSafeInteger(value)) return [name, value]
  throw new UsageError(`--limits must look like ${LIMITS_EXAMPLE}, or be none`)
}

function readEnd(text: string, now: Date): Date | null {
  if (text === 'never') return null
  const seconds = parseDurationSeconds(text)
  if (!seconds)
    throw new UsageError(`--expires must be never, ${SECONDS_OR_DURATION}, from more than zero to 100 years`)
  if (seconds > LONGEST_LIFE_SECONDS) throw new UsageError('--expires must be at most 876000h, which is 100 years')
  return new Date(now.getTime() + seconds * 1000)
}

const isScope = (text: string): text is Scope => (ALL_SCOPES as readonly string[]).includes(text)

const listOf = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
