import type { Metadata } from '../../db/tables.ts'
import type { UserBody } from '../users/user-shape.ts'

/** Payload of each point, beside `metadata`. */
export interface HookPayloads {
  'before-user-created': { user: UserBody }
  'after-user-created': { user: UserBody }
  'customize-access-token': { user_id: string; claims: Metadata; authentication_method: string }
  'send-email': { user: UserBody; email_data: Readonly<Record<string, string>> }
  'send-sms': { user: UserBody; sms: Readonly<Record<string, string>> }
  'password-verification': { user_id: string; valid: boolean }
  'mfa-verification': { user_id: string; factor_id: string; factor_type: string; valid: boolean }
}

/** Members that are read from an answer, beside `error`, and their types. */
const ANSWERS = {
  'before-user-created': {},
  'after-user-created': {},
  'customize-access-token': { claims: 'object' },
  'send-email': {},
  'send-sms': {},
  'password-verification': { decision: 'string', message: 'string', should_logout_user: 'boolean' },
  'mfa-verification': { decision: 'string', message: 'string' },
} as const satisfies Record<keyof HookPayloads, Record<string, keyof Types>>

interface Types {
  string: string
  boolean: boolean
  object: Metadata
}

type Members<Shape> = { -readonly [Name in keyof Shape]?: Shape[Name] extends keyof Types ? Types[Shape[Name]] : never }

export type HookAnswers = { [Point in keyof HookPayloads]: Members<(typeof ANSWERS)[Point]> }

const typeOf = (value: unknown) => (Array.isArray(value) ? 'array' : typeof value)

/** Returns the members of an answer that the point reads; undefined where one has another type. null is no member. */
export function membersOf<Point extends keyof HookPayloads>(
  point: Point,
  answer: Readonly<Record<string, unknown>>,
): HookAnswers[Point] | undefined {
  const read = Object.entries(ANSWERS[point]).filter(([name]) => (answer[name] ?? null) !== null)
  if (read.some(([name, type]) => typeOf(answer[name]) !== type)) return undefined
  return Object.fromEntries(read.map(([name]) => [name, answer[name]])) as HookAnswers[Point]
}
