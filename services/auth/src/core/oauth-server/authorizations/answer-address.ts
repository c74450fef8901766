import type { KeyObject } from 'node:crypto'
import type { Config } from '../../../config.ts'
import type { OAuthAuthorization } from '../../../db/tables.ts'
import { type OAuthErrorCode, oauthErrorCatalogue } from '../../../oauth-errors.ts'
import { withQuery } from '../../redirects/redirect-url.ts'
import { codeOf, pageIdOf } from './authorization-code.ts'

export interface AddressDeps {
  config: Pick<Config, 'jwt' | 'server'>
  oauthCodeKey: KeyObject
}

/** Parameters of an answer beside `state` and `iss`. */
export type Answer = { code: string } | { error: string; error_description: string }

/** Adds the members of every answer; `iss` names the server (RFC 9207). */
export const answerParameters = (
  { config }: Pick<AddressDeps, 'config'>,
  state: string | null,
  answer: Answer,
): Record<string, string> => ({ ...answer, ...(state !== null && { state }), iss: config.jwt.issuer })

/** Returns the answer of a request that was approved or denied. */
export const answerOf = (
  { oauthCodeKey }: Pick<AddressDeps, 'oauthCodeKey'>,
  { id, status, refusal }: Pick<OAuthAuthorization, 'id' | 'status' | 'refusal'>,
): Answer => {
  if (status === 'approved') return { code: codeOf(oauthCodeKey, id) }
  const error = (refusal ?? 'access_denied') as OAuthErrorCode
  const isDenied = error === 'access_denied'
  return {
    error,
    error_description: isDenied ? 'User denied the request' : oauthErrorCatalogue[error].message,
  }
}

/** Path of the pages that post an answer. */
export const FORM_POST_PATH = '/oauth/form-post'

/** Returns the address that the browser goes to with the answer: the client's, or the page that posts it there. */
export function answerAddress(
  deps: AddressDeps,
  request: Pick<OAuthAuthorization, 'id' | 'status' | 'refusal' | 'state' | 'redirect_uri' | 'response_mode'>,
): string {
  if (request.response_mode === 'form_post') {
    return `${deps.config.server.externalUrl}${FORM_POST_PATH}/${pageIdOf(deps.oauthCodeKey, request.id)}`
  }
  return withQuery(request.redirect_uri, answerParameters(deps, request.state, answerOf(deps, request)))
}
