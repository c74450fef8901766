import { apiError } from '../../errors.ts'

/** Shown in lists and in every answer with the user. */
const MAX_NAME_LENGTH = 255

export function requireShortName(name: string): void {
  if (name.length <= MAX_NAME_LENGTH) return
  throw apiError('validation_failed', { message: `friendly_name may have ${MAX_NAME_LENGTH} characters` })
}
