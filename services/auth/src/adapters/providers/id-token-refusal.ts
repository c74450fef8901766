import { apiError } from '../../errors.ts'
import { describeFailure } from './far-side-failure.ts'

/** Clients of OAuth look for `error` and `error_description`. */
export const badRequest = (description: string, error = 'invalid request', cause?: unknown) =>
  apiError('validation_failed', {
    message: description,
    details: { error, error_description: description },
    ...(cause ? { cause: new Error(describeFailure(cause)) } : {}),
  })
