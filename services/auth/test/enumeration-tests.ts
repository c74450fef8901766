// Whether any order of requests answers differently for an address with an account and for one without.
import { expect } from 'vitest'
import { importLines } from './import-lines.ts'
import { type ProviderSignIns, startProviderSignIns } from './provider-sign-in.ts'
import { type Answer, locationOf, type TestService } from './service.ts'
import { json, startUpstream } from './upstream.ts'

/** Password that a stranger makes up. */
const PASSWORD = 'a stranger chose this'
/** Password of the account, which the stranger does not know. */
const OWNERS = 'correct horse'
const OTHER_AUDIENCE = 'other'
/** Longer than claims, links and gaps last, so that only the account itself is left. */
const HOUR_AND_A_BIT = 3_701

const NUMBERS = Array.from({ length: 200 }, (_, index) => `4915100000${String(index).padStart(3, '0')}`)

export interface Stranger {
  all: ProviderSignIns
  autoconfirming: TestService
  close(): Promise<void>
}

export async function startStranger(settings: Record<string, string> = {}): Promise<Stranger> {
  const gateway = await startUpstream(json({}))
  const all = await startProviderSignIns({
    AUTH_EXTERNAL_PHONE_ENABLED: 'true',
    AUTH_SMS_PROVIDER: 'http',
    AUTH_SMS_HTTP_URL: gateway.url,
    AUTH_SMS_HTTP_BODY: '{"to": "{{ .To }}", "text": "{{ .Text }}"}',
    AUTH_RATE_LIMIT_SMS_SENT: '100000',
    ...settings,
    AUTH_SMS_TEST_OTP: NUMBERS.map((number) => `${number}:135790`).join(','),
    AUTH_JWT_AUDIENCES: OTHER_AUDIENCE,
    AUTH_RATE_LIMIT_EMAIL_SENT: '100000',
  })
  const autoconfirming = await all.service.with({ AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_SMS_AUTOCONFIRM: 'true' })
  return {
    all,
    autoconfirming,
    async close() {
      await autoconfirming.close()
      await all.close()
      await gateway.close()
    },
  }
}

type Request = (stranger: Stranger, email: string) => Promise<Answer | undefined>

const post =
  (path: string, body: object, headers: Record<string, string> = {}): Request =>
  ({ all }, email) =>
    all.service.post(path, { email, ...body }, headers)

/** Requests that a stranger can send for any address; an admin's, whose answer only the admin sees, comes between. */
const STRANGERS_REQUESTS = {
  'a sign-up': post('/signup', { password: PASSWORD }),
  'a sign-in with its password': post('/token?grant_type=password', { password: PASSWORD }),
  'a link': post('/otp', {}),
  'a guess at a code': post('/verify', { type: 'email', token: '000000' }),
  'a sign-in at a provider': ({ all }, email) => signInAt(all, email),
  "an admin's invitation": async ({ all: { service } }, email) => {
    await service.post('/invite', { email }, service.admin)
    return undefined
  },
  'a sign-in with another password': post('/token?grant_type=password', { password: 'wrong horse' }),
  'a recovery': post('/recover', {}),
  'a resend': post('/resend', { type: 'signup' }),
} satisfies Record<string, Request>

export type StrangersRequest = keyof typeof STRANGERS_REQUESTS

const CHALLENGE = { code_challenge: 'c'.repeat(43), code_challenge_method: 's256' }

/** Requests that are tried again and again, past every gap and cap. */
const ASKED_AGAIN = {
  ...STRANGERS_REQUESTS,
  'a link for an account': post('/otp', { create_user: false }),
  'a link with a code challenge': post('/otp', CHALLENGE),
  'a link by its older path': post('/magiclink', {}),
  'a recovery with a code challenge': post('/recover', CHALLENGE),
  'a sign-up with a code challenge': post('/signup', { password: PASSWORD, data: { name: 'x' }, ...CHALLENGE }),
  'a resend of a change': post('/resend', { type: 'email_change' }),
  ...Object.fromEntries(
    ['signup', 'invite', 'recovery', 'magiclink', 'email_change'].map((type) => [
      `a guess at a code of type ${type}`,
      post('/verify', { type, token: '000000' }),
    ]),
  ),
  'a guess at a code with a password': post('/verify', { type: 'invite', token: '000000', password: PASSWORD }),
  'a sign-up in another audience': post('/signup', { password: PASSWORD }, { 'x-jwt-aud': OTHER_AUDIENCE }),
  'a sign-in in another audience': post(
    '/token?grant_type=password',
    { password: PASSWORD },
    { 'x-jwt-aud': OTHER_AUDIENCE },
  ),
  'a recovery in another audience': post('/recover', {}, { 'x-jwt-aud': OTHER_AUDIENCE }),
} satisfies Record<string, Request>

type AnyRequest = StrangersRequest | keyof typeof ASKED_AGAIN
export const AGAIN = Object.keys(ASKED_AGAIN) as AnyRequest[]
export const REQUESTS = Object.keys(STRANGERS_REQUESTS) as StrangersRequest[]
/** Requests that are tried in every order of three. */
export const WAYS_IN = REQUESTS.slice(0, 6)

/** Ways in which an address is known to the service, or not. */
export const KNOWN = {
  nobody: async () => {},
  confirmed: async ({ all: { service } }, email) =>
    void (await service.post('/admin/users', { email, password: OWNERS, email_confirm: true }, service.admin)),
  pending: async ({ all: { service } }, email) => void (await service.post('/signup', { email, password: OWNERS })),
  'provider-only': async ({ all }, email) => void (await all.signIn('github', { id: newId(), email })),
  invited: async ({ all: { service } }, email) => void (await service.post('/invite', { email }, service.admin)),
  'made by an admin': async ({ all: { service } }, email) =>
    void (await service.post('/admin/users', { email, password: OWNERS }, service.admin)),
  imported: async ({ all: { service } }, email) => void (await importLines(service, [imported(email, true)])),
  'imported unconfirmed': async ({ all: { service } }, email) =>
    void (await importLines(service, [imported(email, false)])),
  banned: async ({ all: { service } }, email) => {
    const { body } = await service.post('/admin/users', { email, email_confirm: true }, service.admin)
    await service.put(`/admin/users/${body.id}`, { ban_duration: '8760h' }, service.admin)
  },
  deleted: async ({ all: { service } }, email) => {
    const { body } = await service.post('/admin/users', { email, email_confirm: true }, service.admin)
    const url = `/admin/users/${body.id}`
    await service.app.inject({ method: 'DELETE', url, headers: service.admin, payload: { should_soft_delete: true } })
  },
  'in another audience': async ({ all: { service } }, email) => {
    const headers = { ...service.admin, 'x-jwt-aud': OTHER_AUDIENCE }
    await service.post('/admin/users', { email, password: OWNERS, email_confirm: true }, headers)
  },
  assumed: async ({ autoconfirming }, email) =>
    void (await autoconfirming.post('/signup', { email, password: OWNERS })),
} satisfies Record<string, (stranger: Stranger, email: string) => Promise<void>>

/** Kinds without a row that has the address. */
const NOT_STORED: readonly string[] = ['nobody', 'deleted']

export type Known = keyof typeof KNOWN
export const ALL_KNOWN = Object.keys(KNOWN) as Known[]

let ids = 50_000
const newId = () => String(++ids)

/** Hash of no password that a test sends. */
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$0VfgEhrOUSlGRjqWw5BQWsD8y1FJE1wDX6WqWQn0yF8'
const imported = (email: string, email_verified: boolean) => ({ email, email_verified, password_hash: HASH })

/** A browser's way to a provider that verifies no address, with one account for each address. */
async function signInAt({ far, service }: ProviderSignIns, email: string): Promise<Answer> {
  const browser = service.otherBrowser()
  const begun = await browser.get('/authorize?provider=spotify')
  const callback = far.visit('spotify', new URL(locationOf(begun)), { id: email, email })
  const answer = await browser.get(`/callback?${new URLSearchParams(callback)}`)
  return { ...answer, text: locationOf(answer) }
}

/** Sends the requests for an address of each kind and expects the same answers as for an unknown one. */
export async function expectEqualAnswers(
  stranger: Stranger,
  order: readonly AnyRequest[],
  kinds: readonly Known[] = ALL_KNOWN,
  waits: readonly number[] = [],
): Promise<void> {
  const { service } = stranger.all
  const addresses = Object.fromEntries(kinds.map((kind) => [kind, `known-${newId()}@example.com`])) as Record<
    Known,
    string
  >
  for (const kind of kinds) await KNOWN[kind](stranger, addresses[kind])
  const { rows } = await service.deps.pool.query('select email from users where email = any ($1)', [
    Object.values(addresses),
  ])
  expect(rows).toHaveLength(kinds.filter((kind) => !NOT_STORED.includes(kind)).length)
  await service.settled()
  service.clock.advance({ seconds: HOUR_AND_A_BIT })
  const answers: Record<string, unknown[]> = Object.fromEntries(kinds.map((kind) => [kind, []]))
  for (const [index, name] of order.entries()) {
    service.clock.advance({ seconds: waits[index] ?? 0 })
    for (const kind of kinds) {
      const answer = await ASKED_AGAIN[name]?.(stranger, addresses[kind])
      if (answer) answers[kind]?.push(withoutOwn(answer, addresses[kind]))
    }
    // A worker records the claim of a link once more, after whichever request came meanwhile.
    await service.settled()
  }
  for (const kind of kinds) expect({ kind, answers: answers[kind] }).toEqual({ kind, answers: answers.nobody })
}

/** Requests for a number, and ways in which it is known. */
export const OF_NUMBERS = {
  'a sign-up': ['/signup', { password: PASSWORD }],
  'a sign-in with its password': ['/token?grant_type=password', { password: PASSWORD }],
  'a code': ['/otp', {}],
  'a guess at a code': ['/verify', { type: 'sms', token: '000000' }],
  'a resend': ['/resend', { type: 'sms' }],
  'a code for an account': ['/otp', { create_user: false }],
  'a guess at a code of a change': ['/verify', { type: 'phone_change', token: '000000' }],
  'a resend of a change': ['/resend', { type: 'phone_change' }],
} satisfies Record<string, [path: string, body: object]>

const KNOWN_NUMBERS: Record<string, (stranger: Stranger, phone: string) => Promise<unknown>> = {
  nobody: async () => {},
  confirmed: ({ all: { service } }, phone) =>
    service.post('/admin/users', { phone, password: OWNERS, phone_confirm: true }, service.admin),
  pending: ({ all: { service } }, phone) => service.post('/signup', { phone, password: OWNERS }),
  'made by an admin': ({ all: { service } }, phone) =>
    service.post('/admin/users', { phone, password: OWNERS }, service.admin),
  assumed: ({ autoconfirming }, phone) => autoconfirming.post('/signup', { phone, password: OWNERS }),
}

export type OfNumber = keyof typeof OF_NUMBERS

/** The same for numbers: test numbers, unless `newNumber` makes others. */
export async function expectEqualAnswersForNumbers(
  stranger: Stranger,
  order: readonly OfNumber[],
  waits: readonly number[] = [],
  newNumber = () => NUMBERS.pop() as string,
): Promise<void> {
  const { service } = stranger.all
  const answers: Record<string, unknown[]> = {}
  const numbers = Object.entries(KNOWN_NUMBERS).map(([kind, make]) => ({ kind, make, phone: newNumber() }))
  for (const { make, phone } of numbers) await make(stranger, phone)
  await service.settled()
  service.clock.advance({ seconds: HOUR_AND_A_BIT })
  for (const [index, name] of order.entries()) {
    service.clock.advance({ seconds: waits[index] ?? 0 })
    const [path, body] = OF_NUMBERS[name]
    for (const { kind, phone } of numbers) {
      answers[kind] ??= []
      answers[kind].push(withoutOwn(await service.post(path, { phone, ...body }), phone))
    }
    await service.settled()
  }
  for (const { kind } of numbers) expect({ kind, answers: answers[kind] }).toEqual({ kind, answers: answers.nobody })
}

/** The whole answer without ids, times and the address, which differ between any two requests. */
function withoutOwn({ status, headers: { date: _, ...headers }, text }: Answer, address: string) {
  const neutral = (value: string) =>
    value
      .replaceAll(address, '<address>')
      .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
      .replaceAll(/(__Host-auth-attempt-<id>)=[\w-]{43};/g, '$1=<secret>;')
  return { status, headers: neutral(JSON.stringify(headers)), body: neutral(text) }
}

/** Seconds before each repetition: within gaps, past them, and often enough for the waits of a password. */
const PAUSES = [0, 1, 61, 61, 901, 61, 61, 0]

/** The same for numbers, often enough for their caps, too. */
const PAUSES_OF_NUMBERS = [0, 0, 1, 61, 61, 61, 901, 901, 0, 61, 61, 61]

/** A repetition in each gap, and past it. */
export const FEW_PAUSES = [0, 0, 61, 901]

/** Sends a request so often that gaps and caps of the address refuse it, and expects the same for all kinds. */
export const expectEqualAgain = (
  stranger: Stranger,
  name: AnyRequest,
  { kinds = ALL_KNOWN, pauses = PAUSES }: { kinds?: readonly Known[]; pauses?: readonly number[] } = {},
): Promise<void> =>
  expectEqualAnswers(
    stranger,
    pauses.map(() => name),
    kinds,
    pauses,
  )

/** The same for numbers, each in a block of its own. */
export const expectEqualAgainForNumbers = (stranger: Stranger, name: OfNumber): Promise<void> =>
  expectEqualAnswersForNumbers(
    stranger,
    PAUSES_OF_NUMBERS.map(() => name),
    PAUSES_OF_NUMBERS,
    () => `4917${newId()}0000`,
  )
