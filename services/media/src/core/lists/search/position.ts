import { createHash } from 'node:crypto'
import { invalidField } from '../../clips/clip-fields.ts'
import { isClipId } from '../../clips/clip-id.ts'

export const SORTS = ['created', 'title', 'bytes', 'duration', 'views'] as const
export type Sort = (typeof SORTS)[number]

export type SortKey = Date | string | number

/** Position in a sorted list: the last clip before it. */
export interface Position {
  key: SortKey
  id: string
}

/**
 * Name of a list in its cursors, made of all parameters that decide its clips and their order: any other list refuses
 * them.
 */
export function listName(parameters: Record<string, unknown>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return createHash('sha256').update(JSON.stringify(given.toSorted())).digest('base64url').slice(0, 11)
}

export function writePosition({ key, id }: Position, list: string): string {
  return Buffer.from(JSON.stringify([list, key instanceof Date ? key.getTime() : key, id])).toString('base64url')
}

/** Throws invalid_field. */
export function readPosition(cursor: string, list: string, sort: Sort): Position {
  const position = toPosition(parse(cursor), list, sort)
  if (!position) throw invalidField('cursor', 'must be the next_cursor of a previous page of the same list')
  return position
}

function toPosition(read: unknown, list: string, sort: Sort): Position | undefined {
  if (!Array.isArray(read) || read[0] !== list) return undefined
  const [, key, id] = read
  if (typeof id !== 'string' || !isClipId(id)) return undefined
  if (sort === 'title') return isKey(key) ? { key, id } : undefined
  if (!Number.isSafeInteger(key) || key < 0) return undefined
  if (sort !== 'created') return { key, id }
  return key <= LATEST_MS ? { key: new Date(key), id } : undefined
}

/** The last moment of the year 9999. */
const LATEST_MS = 253_402_300_799_999

/** PostgreSQL stores no NUL, nor half a character. */
const isKey = (key: unknown): key is string => typeof key === 'string' && key.isWellFormed() && !key.includes('\0')

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}
