// Bodies of requests and answers that routes share: shapes, pages of lists, addresses, errors. They know no
// flow. Tests: here and test/bad-input.test.ts.
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'

/** Documented error bodies; error-bodies.ts selects the form. */
export const ErrorShape = Type.Object(
  {
    code: Type.Union([Type.Integer(), Type.String()]),
    error_code: Type.Optional(Type.String()),
    msg: Type.Optional(Type.String()),
    message: Type.Optional(Type.String()),
    error_id: Type.Optional(Type.String()),
  },
  {
    title: 'Error',
    additionalProperties: true,
    description: 'Older form: code (status), error_code, msg. Newer form: code, message.',
  },
)

export const errorResponses = (...statuses: number[]) =>
  Object.fromEntries([...statuses, 500, 503, 504].map((status) => [status, ErrorShape]))

const HookRefusal = Type.Object(ErrorShape.properties, {
  title: 'HookRefusal',
  additionalProperties: true,
  description: 'Refusal of a hook (`hook_rejected`), with the status that it names.',
})

/** Errors of a route at which hooks are asked. */
export const hookedResponses = (...statuses: number[]) => ({ ...errorResponses(...statuses), default: HookRefusal })

/** Text; only the body as a whole is bounded (1 MiB), so each use checks its length. */
export const Field = Type.String()

export const Empty = Type.Object({})
/** Target of the link in a mail (redirect-target.ts). */
export const RedirectQuery = Type.Object({ redirect_to: Type.Optional(Type.String()) })

/** One of these names; the handler refuses others with its own message. */
export const choiceOf = (names: readonly string[], members: Parameters<typeof inDocument>[0] = {}) =>
  Type.String(inDocument({ enum: names, ...members }))

/** Field that the handler requires, with its own message. */
export const NeededField = Type.String(inDocument({ required: true }))

/** PKCE fields (RFC 7636) of a query or body. */
export const pkceFields = {
  code_challenge: Type.Optional(Type.String()),
  code_challenge_method: Type.Optional(choiceOf(['s256', 'plain'], { title: 'CodeChallengeMethod' })),
}

export const ChannelField = choiceOf(['sms', 'whatsapp'], { title: 'Channel' })

export const Redirect = withHeaders(Type.Null(), 'Location')

export const HtmlPage = Type.Unsafe<string>({ content: { 'text/html': { schema: Type.String() } } })
