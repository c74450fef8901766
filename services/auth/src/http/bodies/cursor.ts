import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import type { Position } from '../../db/position.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'

/** Query of lists that can be walked by cursor, at a cost that does not grow with the distance. */
export const CursorQuery = {
  limit: Type.Optional(
    Type.String({
      description: 'Entries per answer when listing by cursor, at most 1000; larger values are taken as 1000.',
      ...inDocument({ type: 'integer', minimum: 1, default: 50 }),
    }),
  ),
  cursor: Type.Optional(Type.String({ description: 'Cursor of the previous answer.' })),
}

type ListQuery = Partial<Record<'page' | 'per_page' | 'limit' | 'cursor', string | undefined>>

/**
 * Returns whether a list is asked for by cursor; page and per_page come first, so that clients of pages notice nothing.
 */
export const isWalk = ({ page, per_page: perPage, limit, cursor }: ListQuery): boolean =>
  (limit !== undefined || cursor !== undefined) && !page && !perPage

const MAX_CURSOR_LENGTH = 300

/** Opaque to clients: base64url of `{"created_at","id"}`. */
export const formatCursor = ({ created_at, id }: Position): string =>
  Buffer.from(JSON.stringify({ created_at, id })).toString('base64url')

/** Throws validation_failed for a malformed cursor, which must not reach the database. */
export function parseCursor(cursor: string): Position {
  const place = cursor.length <= MAX_CURSOR_LENGTH ? readJson(cursor) : undefined
  const { created_at: createdAt, id } = (place ?? {}) as { created_at?: unknown; id?: unknown }
  const time = typeof createdAt === 'string' ? normalTime(createdAt) : undefined
  if (!time || typeof id !== 'string' || !UUID.test(id) || id === NIL_UUID) {
    throw apiError('validation_failed', { message: 'cursor is not valid' })
  }
  return { created_at: time, id }
}

function readJson(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    return undefined
  }
}

const RFC_3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$/

/** Returns UTC with all six digits, which a Date would cut to three; undefined for a malformed time and for year 1. */
function normalTime(text: string): string | undefined {
  const [, time, fraction = '', zone] = RFC_3339.exec(text) ?? []
  const seconds = Date.parse(`${time}${zone}`)
  if (Number.isNaN(seconds)) return undefined
  const inUtc = new Date(seconds).toISOString().slice(0, 19)
  return /^\d{4}-/.test(inUtc) && !inUtc.startsWith('000') ? `${inUtc}${fraction}Z` : undefined
}
