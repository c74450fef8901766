import { withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { ErrorShape } from './shapes.ts'

/** Failure of an endpoint of the OAuth server (RFC 6749, section 5.2). */
export const OAuthErrorShape = Type.Object(
  { error: Type.String(), error_description: Type.Optional(Type.String()) },
  { title: 'OAuthError', additionalProperties: true },
)

/** 404: the server is disabled. */
export const oauthErrors = (...statuses: number[]) => ({
  ...Object.fromEntries([...statuses, 400, 408, 413, 500, 503, 504].map((status) => [status, OAuthErrorShape])),
  401: withHeaders(OAuthErrorShape, 'WWW-Authenticate'),
  404: ErrorShape,
})
