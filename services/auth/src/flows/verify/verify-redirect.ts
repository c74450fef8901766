import type { ApiError } from '@services/common/errors'
import { ERROR_NAMES, sessionParameters } from '../../core/redirects/redirect-parameters.ts'
import { withFragment, withQuery } from '../../core/redirects/redirect-url.ts'
import type { SessionBody } from '../../core/sessions/answer-session.ts'

/** How a link was asked for: with a code challenge (answers go into the query) or without (into the fragment). */
export type Flow = 'implicit' | 'pkce'

export const flowOf = (linkToken: string): Flow => (linkToken.startsWith('pkce_') ? 'pkce' : 'implicit')

/** The target with the session in a fragment, after one of its own: there are applications whose pages are fragments. */
export const sessionRedirect = (target: string, session: SessionBody): string =>
  target + withFragment('', { ...sessionParameters(session), type: session.type ?? '' })

/** The target with the code added to its query. */
export const codeRedirect = (target: string, code: string): string => withQuery(target, { code })

/** The target with a message for the user: for PKCE in the query and the fragment, else in the fragment alone. */
export const messageRedirect = (target: string, message: string, flow: Flow): string =>
  redirect(target, { message }, flow)

/** The target with the error, in the same places; a fragment it may have is replaced. */
export function errorRedirect(target: string, error: ApiError, flow: Flow): string {
  const name = ERROR_NAMES[error.status]
  return redirect(
    target,
    { ...(name ? { error: name } : {}), error_code: error.code, error_description: error.message },
    flow,
  )
}

const redirect = (target: string, parameters: Record<string, string>, flow: Flow): string =>
  withFragment(flow === 'pkce' ? withQuery(target, parameters) : target, parameters)
