import { apiError } from '../../errors.ts'

/** Bound on roles and audiences, which are in every token. */
const MAX_NAME_BYTES = 255

export function parseName(field: 'role' | 'aud', name: string | undefined): string | undefined {
  if (!name) return undefined
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  throw apiError('validation_failed', { message: `${field} cannot be longer than ${MAX_NAME_BYTES} bytes` })
}

/** The longest e-mail address there is. */
const MAX_FILTER_LENGTH = 255

export function parseFilter(filter: string | undefined): string | undefined {
  if (!filter) return undefined
  if (filter.length <= MAX_FILTER_LENGTH && !filter.includes('\0')) return filter
  throw apiError('validation_failed', {
    message: `filter must be at most ${MAX_FILTER_LENGTH} characters, without NUL`,
  })
}
