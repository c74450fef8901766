import { Type } from 'typebox'
import type { Metadata } from '../db/tables.ts'

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

/** Longest text accepted in a field that has no limit of its own; the body as a whole is bounded to 1 MiB. */
export const MAX_FIELD_LENGTH = 4_096

export const Field = Type.String({ maxLength: MAX_FIELD_LENGTH })
/** An object of the caller's own making: stored and returned as it is. */
export const FreeForm = Type.Unsafe<Metadata>(Type.Object({}, { additionalProperties: true }))
