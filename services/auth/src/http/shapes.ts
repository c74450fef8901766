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
  { additionalProperties: true, description: 'Older form: code (status), error_code, msg. Newer form: code, message.' },
)

/** The error answers a route documents, by status. */
export const errorResponses = (...statuses: number[]) =>
  Object.fromEntries([...statuses, 500, 503, 504].map((status) => [status, ErrorShape]))

/** A text; the body as a whole is bounded to 1 MiB, and each use checks what it needs. */
export const Field = Type.String()

export const Empty = Type.Object({})
/** Where the link of a mail leads; see redirect-target.ts. */
export const RedirectQuery = Type.Object({ redirect_to: Type.Optional(Type.String()) })
