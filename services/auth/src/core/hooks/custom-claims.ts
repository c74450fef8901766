import { isDeepStrictEqual } from 'node:util'
import type { Kysely } from 'kysely'
import type { AmrEntry, DB, Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { causedBy } from './hooks.ts'
import type { Questions } from './questions.ts'

const POINT = 'customize-access-token'

/** Claims that the service itself relies on. */
export interface Claims extends Metadata {
  sub: string
  exp: number
  iat: number
}

export interface ClaimDeps {
  questions?: Questions
  config: { hooks: { 'customize-access-token'?: { isAdditive: boolean } } }
}

/** Returns the claims of an access token after the hook; those given, where there is none. */
export async function customClaims<Given extends Claims>(
  { questions, config }: ClaimDeps,
  db: Kysely<DB>,
  given: Given,
  method: string,
): Promise<Claims> {
  if (!questions?.has(POINT)) return given
  const payload = { user_id: given.sub, claims: given, authentication_method: method }
  const key = keyOf(given, method)
  const first = await questions.ask(db, POINT, key, payload)
  // Rights may have been revoked meanwhile. Asked again once, because the hook itself may change them each time.
  const asked = isSameUser(first.payload.claims, given)
    ? first
    : await questions.ask(db, POINT, `${key} again`, payload)
  const isAdditive = config.hooks[POINT]?.isAdditive
  const { claims } = asked.answer
  if (!claims && !isAdditive) throw refused('output claims field is missing')
  const sent = asked.payload.claims
  return acceptedClaims(isAdditive ? { ...sent, ...claims } : { ...claims }, sent)
}

/** Names the facts that an answer is about, without times, which differ in another run, and `changeable` ones. */
function keyOf(claims: Claims, method: string): string {
  const { exp: _e, iat: _i, nbf: _n, jti: _j, app_metadata: _a, user_metadata: _u, amr: _m, ...facts } = claims
  return JSON.stringify([method, facts])
}

/** Facts that a hook may change itself. Methods alone of `amr`: their times differ in another run. */
const changeable = ({ app_metadata: app, user_metadata: user, amr }: Metadata) => [
  app,
  user,
  (amr as AmrEntry[]).map(({ method }) => method),
]

const isSameUser = (before: Metadata, now: Metadata) => isDeepStrictEqual(changeable(before), changeable(now))

type Rule = (value: unknown) => boolean

const isText: Rule = (value) => typeof value === 'string'
const isInteger: Rule = Number.isSafeInteger
const isObject: Rule = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isListOf =
  (...rules: Rule[]): Rule =>
  (value) =>
    Array.isArray(value) && value.every((each) => rules.some((rule) => rule(each)))

/** Types of known claims; others are free. */
const TYPES: Record<string, [Rule, string]> = {
  aud: [(value) => isText(value) || isListOf(isText)(value), 'a string or a list of strings'],
  ...of(['exp', 'iat', 'nbf'], isInteger, 'an integer'),
  ...of(['jti', 'iss', 'sub', 'email', 'phone', 'role', 'aal', 'session_id', 'client_id'], isText, 'a string'),
  ...of(['app_metadata', 'user_metadata'], isObject, 'an object'),
  amr: [isListOf(isText, isObject), 'a list of strings or objects'],
  is_anonymous: [(value) => typeof value === 'boolean', 'a boolean'],
}

function of(names: string[], rule: Rule, words: string): Record<string, [Rule, string]> {
  return Object.fromEntries(names.map((name) => [name, [rule, words]]))
}

const REQUIRED = ['aud', 'exp', 'iat', 'sub', 'email', 'phone', 'role', 'aal', 'session_id', 'is_anonymous']

/** Claims that name the user, the session and the issuer: with others a token would belong to another user. */
const UNCHANGED = ['sub', 'session_id', 'iss', 'iat', 'client_id']

/** Claims that bind the token of an application beside those. */
const BINDING = ['scope', 'cnf', 'act']

/** Largest claims that a hook may add to: a token of them fits in a header, of which Node takes 16 KiB in all. */
const MAX_BYTES = 8 * 1024
const bytesOf = (claims: Metadata) => Buffer.byteLength(JSON.stringify(claims))

/** Checks the claims that a hook returns against those it was given. Throws unexpected_failure with all reasons. */
export function acceptedClaims(claims: Metadata, given: Metadata): Claims {
  const missing = REQUIRED.filter((name) => claims[name] === undefined).map((name) => `${name} is required`)
  const wrong = Object.entries(TYPES)
    .filter(([name, [rule]]) => claims[name] !== undefined && !rule(claims[name]))
    .map(([name, [, words]]) => `${name} must be ${words}`)
  const reasons = [...missing, ...wrong]
  if (reasons.length > 0) throw refused(`output claims do not conform to the expected schema: ${reasons.join(', ')}`)
  const fixed = given.client_id === undefined ? UNCHANGED : [...UNCHANGED, ...BINDING]
  const changed = fixed.filter((name) => !isDeepStrictEqual(claims[name], given[name]))
  if (changed.length > 0)
    throw refused(`output claims change ${changed.join(', ')}, which a hook must leave as they are`)
  const { exp, iat } = claims as Claims
  if (exp > (given.exp as number)) throw refused('output claims expire later than the given ones')
  if (exp <= iat) throw refused('output claims expire before they are issued')
  if (bytesOf(claims) > Math.max(MAX_BYTES, bytesOf(given))) {
    throw refused(`output claims have more than ${MAX_BYTES} bytes, which no header takes as a token`)
  }
  return claims as Claims
}

const refused = (message: string) => causedBy(POINT, apiError('unexpected_failure', { message }))
