import { apiError } from '../../errors.ts'

/** Not our failure, but one that the code of the reference names so. Of its cause the log gets what holds nothing secret. */
export const farSideFailed = (message: string, cause: unknown) =>
  apiError('unexpected_failure', { status: 502, message, cause: new Error(describeFailure(cause)) })

/**
 * An error of the libraries in words: its other members hold claims, tokens, whole answers. Of a SyntaxError not even the
 * message, which quotes the text that could not be read.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'something else than an error'
  const { name, message, cause, code, error: refusal } = error as Error & { code?: unknown; error?: unknown }
  const words = error instanceof SyntaxError ? 'no JSON' : message
  const codes = [code, refusal].filter((value) => typeof value === 'string' && /^\w{1,60}$/.test(value))
  const described = [name, ...codes, words].join(': ')
  return cause instanceof Error ? `${described} (${describeFailure(cause)})` : described
}
