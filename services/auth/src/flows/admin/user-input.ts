import { MAX_PASSWORD_BYTES } from '../../core/passwords/password-rules.ts'
import { apiError } from '../../errors.ts'

/** Roles and audiences travel in every token. */
const MAX_NAME_BYTES = 255

/** A role or audience as it was given; undefined when none was. Throws validation_failed. */
export function parseName(field: 'role' | 'aud', name: string | undefined): string | undefined {
  if (!name) return undefined
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  throw apiError('validation_failed', { message: `${field} cannot be longer than ${MAX_NAME_BYTES} bytes` })
}

/** The bound on the work of a hash; strength is another question. */
export function refuseOversizedPassword(password: string): void {
  if (Buffer.byteLength(password) <= MAX_PASSWORD_BYTES) return
  throw apiError('validation_failed', { message: `Password cannot be longer than ${MAX_PASSWORD_BYTES} bytes` })
}

/** The longest e-mail address there is. */
const MAX_FILTER_LENGTH = 255

/** What a list is searched for; undefined for all users. Throws validation_failed. */
export function parseFilter(filter: string | undefined): string | undefined {
  if (!filter) return undefined
  if (filter.length <= MAX_FILTER_LENGTH && !filter.includes('\0')) return filter
  throw apiError('validation_failed', {
    message: `filter must be at most ${MAX_FILTER_LENGTH} characters, without NUL`,
  })
}
