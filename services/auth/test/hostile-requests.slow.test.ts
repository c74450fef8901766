import { dereferenced } from '@services/common/testing/http/dereferenced'
import { HOSTILE_SEED, hostileRuns, INNARDS } from '@services/common/testing/http/hostile-run'
import fc from 'fast-check'
import type { InjectOptions } from 'fastify'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ApiDocument, type Endpoint, endpointsOf, type HostileRequest, requestTo } from './hostile-operations.ts'
import { challenge, enrollTotp, totpCode, verifyTotp } from './second-factors.ts'
import { bearer, startTestService, type TestService, toSignedIn } from './service.ts'
import { PASSKEYS } from './webauthn/passkeys.ts'

/** Requests to each endpoint; test:fuzz makes a thousand. */
const RUNS = hostileRuns(15)
/**
 * Rounds of so many requests for an endpoint until one of them is granted: some ask for much before they do anything.
 */
const ROUNDS = 16

/** All requests are made, or it is a failure; a slow machine needs about 50 ms for one. */
const LIMIT = { interruptAfterTimeLimit: 120_000 + RUNS * 400, markInterruptAsFailure: true }
const TEST_WITHIN_MS = RUNS * 32_000

const FAMILIES = [
  ...['service', 'sign-up', 'verify', 'sign-in', 'external sign-in', 'passkeys', 'account', 'second factors', 'admin'],
  'OAuth server',
]

/** Endpoints that no request made up can get to do what it asks; they get one round. */
const UNREACHABLE = [
  // A client needs a list of valid addresses, and the others its id; so does a scope its name.
  'DELETE /admin/oauth/clients/{client_id}',
  'DELETE /admin/oauth/scopes/{name}',
  // So do requests of applications, and what a user granted them.
  'DELETE /admin/users/{user_id}/oauth/grants/{client_id}',
  'DELETE /user/oauth/grants',
  'GET /admin/oauth/clients/{client_id}',
  'GET /admin/oauth/clients/{client_id}/statistics',
  'GET /admin/oauth/scopes/{name}',
  'GET /oauth/authorizations/{authorization_id}',
  'GET /oauth/authorize',
  // A sample of a mail goes to the address of its caller, and these admins have none.
  'POST /admin/mail-templates/{kind}/send',
  // A message is given up after ten minutes of attempts, so there is none to send again.
  'POST /admin/messages/{message_id}/retry',
  'POST /admin/oauth/clients',
  'POST /admin/oauth/clients/{client_id}/regenerate_secret',
  'POST /oauth/authorizations/{authorization_id}/consent',
  'POST /oauth/authorize',
  'POST /oauth/clients/register',
  'POST /oauth/device_authorization',
  'POST /oauth/introspect',
  'POST /oauth/par',
  'POST /oauth/revoke',
  'POST /oauth/token',
  // No value that is made up is the answer of a passkey.
  'POST /passkeys/authentication/verify',
  'POST /passkeys/registration/verify',
  'POST /passkeys/signup/verify',
  'PUT /admin/oauth/clients/{client_id}',
  'PUT /admin/oauth/scopes/{name}',
]

let service: TestService
let endpoints: Endpoint[]
/** Which endpoints did what some request asked. */
const reached = new Set<string>()

beforeAll(async () => {
  service = await startTestService({
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_EXTERNAL_GITHUB_ENABLED: 'true',
    AUTH_EXTERNAL_GITHUB_CLIENT_ID: 'id',
    AUTH_EXTERNAL_GITHUB_SECRET: 'secret',
    AUTH_EXTERNAL_GITHUB_REDIRECT_URI: 'https://auth.example/callback',
    AUTH_EXTERNAL_GITHUB_URL: 'http://127.0.0.1:1',
    AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    AUTH_EXTERNAL_WEB3_SOLANA_ENABLED: 'true',
    ...PASSKEYS,
    AUTH_PASSKEY_SIGNUP_ENABLED: 'true',
    AUTH_SMS_PROVIDER: 'http',
    AUTH_SMS_HTTP_URL: 'http://127.0.0.1:1/',
    AUTH_RATE_LIMIT_EMAIL_SENT: '100000',
    AUTH_RATE_LIMIT_SMS_SENT: '100000',
    AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '100000',
    AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    AUTH_SELF_DELETION_ENABLED: 'true',
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_CONSOLE_ENABLED: 'true',
    AUTH_HOSTED_PAGES_ENABLED: 'true',
  })
  endpoints = endpointsOf(dereferenced((await service.get('/openapi.json')).body as ApiDocument))
})
afterAll(() => service.close())

test('every documented endpoint is of a family below', () => {
  expect(endpoints.length).toBeGreaterThan(30)
  expect([...new Set(endpoints.flatMap(({ tags }) => tags ?? ['none']))].toSorted()).toEqual(FAMILIES.toSorted())
})

test.each(FAMILIES)(
  'whatever is sent to a %s endpoint, the answer is a documented one and tells nothing of the inside',
  async (family) => {
    const problems: string[] = []
    for (const endpoint of endpoints.filter(({ tags }) => tags?.includes(family))) {
      const check = checkOf(endpoint)
      const property = fc.asyncProperty(requestTo(endpoint), async (request) => check(await send(endpoint, request)))
      let result = await fc.check(property, { seed: HOSTILE_SEED, numRuns: RUNS, ...LIMIT })
      const isDone = () => result.failed || reached.has(nameOf(endpoint)) || UNREACHABLE.includes(nameOf(endpoint))
      for (let round = 1; round < ROUNDS && !isDone(); round++) {
        result = await fc.check(property, { seed: HOSTILE_SEED + round, numRuns: RUNS, ...LIMIT })
      }
      if (result.failed) {
        problems.push(
          `${nameOf(endpoint)}\n${fc.defaultReportMessage(result)?.slice(0, 3_000)}\n${result.errorInstance}`,
        )
      }
    }
    expect(problems.join('\n\n')).toBe('')
  },
  TEST_WITHIN_MS,
)

test('each endpoint also did what it was asked, so that more than its first check was seen', () => {
  const missed = endpoints.map(nameOf).filter((name) => !reached.has(name))
  expect(missed.toSorted()).toEqual(UNREACHABLE)
})

interface Answer {
  status: number
  body: string
  isJson: boolean
}

/** Throws for answers that the document does not promise. */
function checkOf({ responses }: Endpoint): (answer: Answer) => void {
  const validators = new Map(
    Object.entries(responses).map(([status, { content }]) => {
      const schema = content?.['application/json']?.schema
      return [Number(status), schema && Compile(schema)]
    }),
  )
  return ({ status, body, isJson }) => {
    const shown = `${status} ${body.slice(0, 500)}`
    if (status >= 500) throw new Error(`failed: ${shown}`)
    if (!validators.has(status)) throw new Error(`status is not documented: ${shown}`)
    if (INNARDS.test(body)) throw new Error(`reveals internals: ${shown}`)
    const validator = validators.get(status)
    if (!validator) return
    const value = isJson ? JSON.parse(body) : body
    if (!validator.Check(value)) {
      throw new Error(`body is not as documented: ${shown} ${JSON.stringify(validator.Errors(value)[0])}`)
    }
  }
}

/** Endpoints that want a proof of the last minutes whatever the settings. */
const NEEDS_PROOF = /\/trusted-devices|^GET \/user\/export$|^DELETE \/user$/

const nameOf = ({ method, path }: Endpoint) => `${method} ${path}`

async function send(endpoint: Endpoint, request: HostileRequest): Promise<Answer> {
  // The gaps between messages pass, so that flows are reached beyond them.
  service.clock.advance({ seconds: 61 })
  const person = await currentPerson(endpoint, request)
  if (NEEDS_PROOF.test(nameOf(endpoint))) await renewProof(person)
  const real = (text: string) => text.replaceAll(NAMES, (name) => person[name as keyof Person])
  const inUrl = (text: string) => encodeURIComponent(real(text).toWellFormed())
  // An empty one would be another endpoint's address.
  const params = endpoint.path.replaceAll(/\{(\w+)\}/g, (_all, name) => inUrl(request.params[name] || ' '))
  const query = request.query.map(([name, value]) => `${name}=${inUrl(value)}`).join('&')
  const response = await service.app.inject({
    method: endpoint.method as InjectOptions['method'],
    url: `${params}?${query}`,
    headers: { ...request.headers, ...(await authorizationOf(request.caller, person)) },
    ...(request.body === undefined ? {} : { payload: real(request.body) }),
  } as InjectOptions)
  if (response.statusCode < 400) reached.add(nameOf(endpoint))
  const isJson = String(response.headers['content-type']).startsWith('application/json')
  return { status: response.statusCode, body: response.payload, isJson }
}

/** Values of the names in a request. */
type Person = Record<
  | '$user'
  | '$session'
  | '$identity'
  | '$message'
  | '$provider'
  | '$webhook'
  | '$delivery'
  | '$email'
  | '$new'
  | '$refresh'
  | '$link'
  | '$code'
  | '$fresh'
  | '$factor'
  | '$passkey'
  | '$secret'
  | '$challenge'
  | '$totp'
  | '$recovery'
  | '$device',
  string
>
const NAMES =
  /\$(user|session|identity|message|webhook|delivery|email|new|refresh|link|code|fresh|factor|passkey|challenge|totp|recovery|device)\b/g

let person: Person | undefined
let people = 0

/** A person with a live session: requests end sessions, ban and delete, and the next one finds a new person. */
async function currentPerson({ path }: Endpoint, request: HostileRequest): Promise<Person> {
  if (!person || !(await isWell(person))) person = await newPerson()
  people++
  const asked = JSON.stringify(request)
  if (path.includes('recovery-codes')) await takeTurnsWithCodes(person)
  const needsToken = /\$(link|code)\b/.test(asked)
  return {
    ...person,
    $new: `new-${people}`,
    $fresh: crypto.randomUUID(),
    ...(needsToken ? await newToken(person) : {}),
    $totp: totpCode(person.$secret, service.clock.now()),
    ...(asked.includes('$passkey') ? { $passkey: await newPasskey(person) } : {}),
    ...(asked.includes('$challenge') ? { $challenge: await newChallenge(person) } : {}),
    ...(/\$(webhook|delivery)\b/.test(asked) ? await newWebhook() : {}),
    ...(asked.includes('$device') ? { $device: await newDevice(person) } : {}),
    ...(asked.includes('$recovery') ? { $recovery: await newRecoveryCode(person) } : {}),
  }
}

async function newToken({ $email: email }: Person) {
  const { body } = await service.post('/admin/generate_link', { type: 'magiclink', email }, service.admin)
  return { $link: body.hashed_token, $code: body.email_otp }
}

async function newChallenge(person: Person): Promise<string> {
  return challenge(service, { auth: await authorizationOf('user', person) }, person.$factor)
}

/** Lets the session have proven its factor just now. */
async function renewProof({ $session, $factor }: Person): Promise<void> {
  const timestamp = Math.floor(service.clock.now().getTime() / 1000)
  const amr = JSON.stringify([{ method: 'totp', timestamp }])
  const proven = [amr, $factor, $session]
  await service.deps.pool.query('update sessions set amr = $1, factor_id = $2 where id = $3', proven)
}

async function newDevice(person: Person): Promise<string> {
  await renewProof(person)
  const auth = await authorizationOf('user', person)
  return (await service.post('/factors/trusted-devices', {}, auth)).body.id ?? person.$user
}

/** The person's passkey, made again where a request removed it. */
async function newPasskey({ $user }: Person): Promise<string> {
  await service.deps.pool.query(
    `insert into passkeys (id, user_id, credential_id, public_key, friendly_name, attestation, aaguid, sign_count,
      transports, backup_eligible, backed_up, user_verified, created_at)
    values ($1::uuid, $1::uuid, $1::text, '', 'Passkey', 'none', $1::uuid, 0, '{}', false, false, false, now())
    on conflict do nothing`,
    [$user],
  )
  return $user
}

/** A receiver of events and a delivery, made again where a request deleted them. */
async function newWebhook() {
  const { body } = await service.get('/admin/webhooks', service.admin)
  const input = { url: 'https://8.8.8.8/', enabled: false }
  const { id } = body.webhooks[0] ?? (await service.post('/admin/webhooks', input, service.admin)).body
  const tested = await service.post(`/admin/webhooks/${id}/test`, {}, service.admin)
  return { $webhook: id as string, $delivery: tested.body.id as string }
}

async function newRecoveryCode(person: Person): Promise<string> {
  const auth = await authorizationOf('user', person)
  await service.post('/factors/recovery-codes', {}, auth)
  return (await service.post('/factors/recovery-codes/regenerate', {}, auth)).body.codes[0]
}

/** A set of codes before every other request: a first one is made only where there is none. */
async function takeTurnsWithCodes(person: Person): Promise<void> {
  const auth = await authorizationOf('user', person)
  if (people % 2) await service.post('/factors/recovery-codes', {}, auth)
  else await service.delete('/factors/recovery-codes', auth)
}

async function isWell({ $session, $factor }: Person): Promise<boolean> {
  const { rowCount } = await service.deps.pool.query(
    `select 1 from sessions join users on users.id = user_id join factors on factors.user_id = users.id
      where sessions.id = $1 and sessions.aal = 'aal2' and factors.id = $2 and banned_until is null`,
    [$session, $factor],
  )
  return rowCount === 1
}

async function newPerson(): Promise<Person> {
  people++
  const account = { email: `person-${people}@example.com`, password: 'correct horse' }
  const created = await service.post('/admin/users', { ...account, email_confirm: true }, service.admin)
  const first = await service.post('/token?grant_type=password', account)
  const { auth } = toSignedIn(first.body)
  const totp = await enrollTotp(service, { auth }, 'first')
  const { body } = await verifyTotp(service, { auth }, totp)
  const { rows } = await service.deps.pool.query('select id from sessions where user_id = $1', [created.body.id])
  const identity = crypto.randomUUID()
  await service.deps.pool.query(
    `insert into identities (id, user_id, provider, provider_id, identity_data, created_at, updated_at)
    values ($1, $2, 'github', $3, '{}', now(), now())`,
    [identity, created.body.id, identity],
  )
  const provider = {
    ...{ provider_type: 'oauth2', identifier: `custom:person-${people}`, name: 'A', client_id: 'a' },
    ...{ authorization_url: 'https://8.8.8.8/a', token_url: 'https://8.8.8.8/t', userinfo_url: 'https://8.8.8.8/u' },
  }
  await service.post('/admin/custom-providers', provider, service.admin)
  const messages = await service.deps.pool.query('select id from messages order by state = $1 desc limit 1', ['failed'])
  return {
    $user: created.body.id,
    $session: rows[0].id,
    $identity: identity,
    $message: messages.rows[0]?.id ?? created.body.id,
    $provider: provider.identifier,
    $webhook: '',
    $delivery: '',
    $email: account.email,
    $new: '',
    $link: '',
    $code: '',
    $fresh: '',
    $refresh: body.refresh_token,
    $factor: totp.id,
    $passkey: '',
    $secret: totp.secret,
    $challenge: '',
    $totp: '',
    $recovery: '',
    $device: '',
  }
}

async function authorizationOf(
  caller: HostileRequest['caller'],
  { $user, $session }: Pick<Person, '$user' | '$session'>,
): Promise<{ authorization: string }> {
  const claims = { sub: $user, session_id: $session, aud: 'authenticated', role: 'authenticated' }
  if (caller === 'nobody') return { authorization: '' }
  if (caller === 'garbage') return { authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.' }
  if (caller === 'expired') return bearer({ ...claims, exp: 1 })
  return caller === 'user' ? bearer(claims) : service.admin
}
