import { isUniqueViolation } from '@services/common/database-errors'
import { apiError } from '../../errors.ts'

/** For a write that gives an account an address: who loses a race for it hears the same as who came too late. */
export function refuseTakenAddress(error: unknown): never {
  if (isUniqueViolation(error, 'users_email_key')) throw apiError('email_exists', { cause: error })
  if (isUniqueViolation(error, 'users_phone_key')) throw apiError('phone_exists', { cause: error })
  throw error
}
