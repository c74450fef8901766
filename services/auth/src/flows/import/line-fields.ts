// Readers of an imported line's members, by type. All throw an Error that names the member and never quotes its value.
import { requireModestMetadata } from '../../core/users/metadata.ts'
import type { Metadata } from '../../db/tables.ts'

export type Json = Record<string, unknown>

/** Longest text outside metadata; a longer one would not fit an index. */
const MAX_TEXT_LENGTH = 1024

/** Exports write null, and the reference "", for an absent value. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== ''

export function readText(json: Json, name: string): string | undefined {
  const value = json[name]
  if (!isGiven(value)) return undefined
  if (typeof value !== 'string' || value.length > MAX_TEXT_LENGTH)
    throw new Error(`${name} must be a text of at most ${MAX_TEXT_LENGTH} characters`)
  return value
}

/** Reads an object, or JSON text of one, as in exports by way of CSV. */
export function readObject(json: Json, name: string): Metadata | undefined {
  const given = json[name]
  if (!isGiven(given)) return undefined
  const problem = `${name} must be an object`
  const value = typeof given === 'string' ? orProblem(problem, () => JSON.parse(given)) : given
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(problem)
  return value
}

/** Reads an object within the limits of user metadata, under our name or that of exports; by default an empty one. */
export function readMetadata(json: Json, name: string, exported = name): Metadata {
  const metadata = readObject(json, name) ?? readObject(json, exported) ?? {}
  orProblem(`${name} is too large or holds a number that is too long`, () => requireModestMetadata(metadata))
  return metadata
}

/** Runs `read` and throws `problem` in place of its error, which may quote a value. */
export function orProblem<Value>(problem: string, read: () => Value): Value {
  try {
    return read()
  } catch {
    throw new Error(problem)
  }
}

/**
 * RFC 3339 or PostgreSQL's form (`2024-05-01 12:00:00.123456+00`). The offset is required: without it a time is
 * ambiguous.
 */
const TIME = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?(?:Z|([+-]\d\d):?(\d\d)?)$/i

export function readTime(json: Json, name: string): string | null {
  const text = readText(json, name)
  if (text === undefined) return null
  const [whole, date, time, fraction = '', hours, minutes = '00'] = TIME.exec(text) ?? []
  const parsed = new Date(`${date}T${time}${fraction.slice(0, 4)}${hours ? `${hours}:${minutes}` : 'Z'}`)
  // JavaScript reads the 30th of February as a day in March.
  const midnight = new Date(`${date}T00:00Z`)
  const isDay = midnight.getUTCDate() === Number(date?.slice(-2))
  if (whole === undefined || !isDay || Number.isNaN(parsed.getTime())) {
    throw new Error(`${name} must be a time with date and offset, as in 2024-05-01T12:00:00Z`)
  }
  return parsed.toISOString()
}
