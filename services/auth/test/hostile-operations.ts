import fc from 'fast-check'
import { freeForm, hostileText, wrongBody, wrongValue } from './hostile-values.ts'

interface JsonSchema {
  type?: string | string[]
  properties?: Record<string, JsonSchema>
  anyOf?: JsonSchema[]
}
interface Content {
  content?: Record<string, { schema: JsonSchema }>
}
interface Operation {
  tags?: string[]
  security?: Record<string, unknown>[]
  parameters?: { in: 'path' | 'query'; name: string }[]
  requestBody?: Content
  responses: Record<string, Content>
}
export interface ApiDocument {
  paths: Record<string, Record<string, Operation>>
}

/** One method of one path, as the document has it. */
export interface Endpoint extends Operation {
  method: string
  path: string
}

export const endpointsOf = ({ paths }: ApiDocument): Endpoint[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, path, method: method.toUpperCase() })),
  )

export const CALLERS = ['nobody', 'garbage', 'user', 'admin', 'expired'] as const

/**
 * A request in terms that stay the same in every run: `$email` and the like stand for properties of the run's person.
 */
export interface HostileRequest {
  caller: (typeof CALLERS)[number]
  params: Record<string, string>
  query: [string, string][]
  headers: Record<string, string>
  body: string | undefined
}

/** Values that get past the first checks, by the name of the field or parameter. */
const PLAUSIBLE: Record<string, readonly string[]> = {
  user_id: ['$user', '$fresh', '11111111-1111-4111-8111-111111111111'],
  session_id: ['$session', '11111111-1111-4111-8111-111111111111'],
  device_id: ['$device', '$user'],
  factor_id: ['$factor', '11111111-1111-4111-8111-111111111111'],
  challenge_id: ['$challenge', '$challenge', '11111111-1111-4111-8111-111111111111'],
  passkey_id: ['$passkey', '11111111-1111-4111-8111-111111111111'],
  factor_type: ['totp', 'phone', 'webauthn'],
  friendly_name: ['$fresh', 'first'],
  issuer: ['Acme', 'x'.repeat(100)],
  identity_id: ['$identity', '11111111-1111-4111-8111-111111111111'],
  provider: ['github', 'GitHub', 'google', 'https://accounts.google.com'],
  skip_http_redirect: ['true'],
  webhook_id: ['$webhook', '11111111-1111-4111-8111-111111111111'],
  test_id: ['11111111-1111-4111-8111-111111111111'],
  kind: ['invite', 'magic_link'],
  language: ['en', 'de'],
  delivery_id: ['$delivery', '11111111-1111-4111-8111-111111111111'],
  url: ['https://127.0.0.1:1/events', 'https://169.254.169.254/', 'http://example.com/'],
  days: ['30', '1'],
  message_id: ['$message', '11111111-1111-4111-8111-111111111111'],
  id: ['$fresh', '11111111-1111-4111-8111-111111111111'],
  email: ['$email', '$new@example.com', 'UPPER@EXAMPLE.COM'],
  new_email: ['$new@example.com', '$email'],
  phone: ['+4915112345678', '49 151 12345678', '1'],
  password: ['correct horse', 'another horse'],
  current_password: ['correct horse'],
  password_hash: [
    '$2b$04$abcdefghijklmnopqrstuu5xVJm0HZ2HPyQ1XwOzGQkN9M0H3kQmC',
    '$argon2id$v=19$m=64,t=1,p=1$AAAA$AAAA',
  ],
  refresh_token: ['$refresh'],
  token: ['$code', '$link', '123456', 'pkce_1'],
  token_hash: ['$link', 'abc'],
  type: [
    ...['signup', 'invite', 'recovery', 'magiclink', 'email', 'sms', 'phone_change'],
    ...['email_change', 'email_change_current', 'email_change_new'],
  ],
  grant_type: ['password', 'refresh_token', 'pkce', 'id_token', 'web3'],
  provider_type: ['oauth2', 'oidc'],
  identifier: ['$provider', 'custom:new'],
  authorization_url: ['https://8.8.8.8/a'],
  token_url: ['https://8.8.8.8/t'],
  userinfo_url: ['https://8.8.8.8/u'],
  linking: ['verified', 'never'],
  chain: ['ethereum', 'solana'],
  message: [
    `site.example wants you to sign in with your Ethereum account:\n0x${'a'.repeat(40)}\n\n\nURI: https://site.example/`,
    'x'.repeat(64),
  ],
  signature: [`0x${'1'.repeat(130)}`, 'A'.repeat(86)],
  scope: ['global', 'local', 'others'],
  channel: ['sms', 'sms', 'sms', 'whatsapp', 'mail'],
  state: ['queued', 'sent', 'failed', 'dropped'],
  redirect_to: ['https://site.example/welcome', 'https://evil.example/'],
  code_challenge: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'],
  code_challenge_method: ['s256', 'S256', 'plain'],
  code: ['$totp', '$recovery', '123456'],
  auth_code: ['abc'],
  code_verifier: ['dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'],
  nonce: ['123456'],
  role: ['editor', 'service_role'],
  aud: ['authenticated', 'elsewhere'],
  ban_duration: ['none', '1h', '0', '-1h', '292000h', '2562047h47m16s', '1ns'],
  page: ['1', '2', '999999999', '1000000000'],
  per_page: ['1', '1000', '1001'],
  limit: ['1', '1000'],
  sort: ['created_at', 'created_at asc'],
  filter: ['a', '%', '_', '\\'],
  query: ['a', '%', 'author:cli', 'action:login', 'type:user'],
  cursor: ['e30', 'bnVsbA', 'eyJjcmVhdGVkX2F0IjoiMjAyNC0wMi0zMFQwMDowMDowMFoiLCJpZCI6IiJ9'],
}

const textFor = (name: string) => {
  const plausible = PLAUSIBLE[name]
  return plausible ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...plausible) }, hostileText) : hostileText
}

export function requestTo({ parameters = [], requestBody, security }: Endpoint): fc.Arbitrary<HostileRequest> {
  const rightCaller = security?.[0]?.admin ? 'admin' : security?.[0]?.user ? 'user' : 'nobody'
  const named = (place: 'path' | 'query') => parameters.filter((each) => each.in === place).map(({ name }) => name)
  return fc.record({
    caller: fc.oneof({ weight: 3, arbitrary: fc.constant(rightCaller) }, fc.constantFrom(...CALLERS)),
    params: fc.record(Object.fromEntries(named('path').map((name) => [name, textFor(name)]))),
    query: queryOf(named('query')),
    headers,
    body: bodyOf(Object.values(requestBody?.content ?? {})[0]?.schema),
  })
}

/** Documented parameters, each optional, some twice, and an undocumented one. */
const queryOf = (names: string[]): fc.Arbitrary<[string, string][]> => {
  const pairs = [...names, 'unknown'].map((name) => fc.tuple(fc.constant(name), textFor(name)))
  return fc.array(fc.oneof(...pairs), { maxLength: names.length + 1 })
}

const header = (name: string, value: fc.Arbitrary<string>) => fc.tuple(fc.constant(name), value)
const headerText = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) })
/** Size: two at most, because more would refuse too many requests before their bodies are checked. */
const headers = fc
  .array(
    fc.oneof(
      header('content-type', fc.constantFrom('text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data')),
      header('content-type', headerText),
      header('x-supabase-api-version', fc.constantFrom('2024-01-01', '2023-01-01', '9999-99-99', 'latest')),
      header('x-jwt-aud', fc.oneof(fc.constantFrom('authenticated', 'x'.repeat(10_000)), headerText)),
      header('accept-language', fc.oneof(fc.constantFrom('de', 'de;q=NaN,*;q=1e308', 'a-'.repeat(2_000)), headerText)),
      header('x-device-token', fc.oneof(fc.constant('a'.repeat(64)), headerText)),
      header('x-forwarded-host', fc.oneof(fc.constantFrom('evil.example', 'a@b', '[::1'), headerText)),
      header('x-forwarded-for', headerText),
      header('user-agent', fc.oneof(fc.constant('x'.repeat(10_000)), headerText)),
      header('referer', fc.constantFrom('https://site.example/from', 'https://ada:secret@site.example/', '%', '//')),
      header('purpose', fc.constant('prefetch')),
    ),
    { maxLength: 2 },
  )
  .map((pairs): Record<string, string> => Object.fromEntries(pairs))

/**
 * Mostly an object of documented members that are all right, or all but one, so that it passes the first check. Where
 * no body is documented, sometimes any at all.
 */
function bodyOf(schema: JsonSchema | undefined): fc.Arbitrary<string | undefined> {
  const properties = schema?.properties ?? schema?.anyOf?.[0]?.properties
  if (!properties) return fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, wrongBody)
  const members = Object.entries(properties).map(([name, member]) => [name, rightValue(name, member)])
  const right = fc.record(Object.fromEntries(members) as Record<string, fc.Arbitrary<unknown>>, { requiredKeys: [] })
  const wrongMember = fc.tuple(fc.constantFrom(...Object.keys(properties)), fc.oneof(hostileText, wrongValue))
  return fc.oneof(
    { weight: 4, arbitrary: right.map((body) => JSON.stringify(withoutContradictions(body))) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(right, wrongMember)
        .map(([body, [name, value]]) => JSON.stringify({ ...withoutContradictions(body), [name]: value })),
    },
    { weight: 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: wrongBody },
  )
}

/** Members that exclude each other are refused before any other check. */
function withoutContradictions(body: Record<string, unknown>): Record<string, unknown> {
  const left = { ...body }
  if ('email' in left) delete left.phone
  if ('password' in left) delete left.password_hash
  if ('token_hash' in left) for (const name of ['token', 'email', 'redirect_to']) delete left[name]
  if (!('code_challenge' in left && 'code_challenge_method' in left)) {
    delete left.code_challenge
    delete left.code_challenge_method
  }
  return left
}

function rightValue(name: string, schema: JsonSchema): fc.Arbitrary<unknown> {
  const [type] = [(schema.anyOf?.[0] ?? schema).type].flat()
  if (type === 'boolean') return fc.boolean()
  if (type === 'object') return freeForm
  if (type === 'array') return fc.constantFrom([], ['text'])
  return fc.constantFrom(...(PLAUSIBLE[name] ?? ['text']))
}
