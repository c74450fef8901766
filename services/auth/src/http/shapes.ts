import { inDocument, withHeaders } from '@services/common/documented'
import { Type } from 'typebox'

/** Documented error bodies: the older form is the default, see error-bodies.ts. */
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

/** The error answers a route documents, by status. */
export const errorResponses = (...statuses: number[]) =>
  Object.fromEntries([...statuses, 500, 503, 504].map((status) => [status, ErrorShape]))

/** A text; the body as a whole is bounded to 1 MiB, and each use checks what it needs. */
export const Field = Type.String()

export const Empty = Type.Object({})
/** Where the link of a mail leads; see redirect-target.ts. */
export const RedirectQuery = Type.Object({ redirect_to: Type.Optional(Type.String()) })

/** One of these; another one is refused by the handler, in words of its own. */
export const choiceOf = (names: readonly string[], members: Parameters<typeof inDocument>[0] = {}) =>
  Type.String(inDocument({ enum: names, ...members }))

/** A field without which the handler refuses the request, in words of its own. */
export const NeededField = Type.String(inDocument({ required: true }))

/** RFC 7636, in a query or a body. */
export const pkceFields = {
  code_challenge: Type.Optional(Type.String()),
  code_challenge_method: Type.Optional(choiceOf(['s256', 'plain'], { title: 'CodeChallengeMethod' })),
}

/** How a code comes to a phone. */
export const ChannelField = choiceOf(['sms', 'whatsapp'], { title: 'Channel' })

/** An answer without a body, to follow. */
export const Redirect = withHeaders(Type.Null(), 'Location')

/** A page for people. */
export const HtmlPage = Type.Unsafe<string>({ content: { 'text/html': { schema: Type.String() } } })
