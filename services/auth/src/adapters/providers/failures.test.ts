import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type ProviderSignIns, refusalOf, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { FAILURES, json, text } from '../../../test/upstream.ts'
import { PROVIDER_EXAMPLES } from '../../../test/upstreams/provider-examples.ts'
import type { Instead, Step } from '../../../test/upstreams/sign-in-providers.ts'
import { createProviders } from './index.ts'

const NAMES = Object.keys(PROVIDER_EXAMPLES)
const hasStep = (name: string, step: Step) =>
  Object.values(PROVIDER_EXAMPLES[name]?.endpoints ?? {}).some((endpoint) => endpoint.step === step)

const { 'hangs before the answer': hangs, 'hangs within the answer': hangsWithin, ...AT_ONCE } = FAILURES
const BROKEN: Record<string, Instead | undefined> = {
  ...AT_ONCE,
  'answers an error': json({ error: 'invalid_grant', error_description: 'The code has expired' }, 400),
  'answers an error as if it were none': json({ ok: false, error: 'invalid_code' }),
  'answers JSON that is none': text('{"access_token": "a", '),
  'answers a list': json([1, 2]),
  'answers null': json(null),
  'answers nothing': text(''),
  'answers what it should, but with status 500': (response, usual) => void response.writeHead(500).end(usual),
  'answers what it should, but at too great a length': (response, usual) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(usual + ' '.repeat(1024 * 1024)),
}

const FAILED = {
  status: 302,
  to: 'https://site.example/app',
  error: 'server_error',
  error_code: 'unexpected_failure',
  error_description: expect.stringMatching(/^(Unable to|Error getting user profile from external provider)/),
}

let all: ProviderSignIns
let usual: ProviderSignIns['service']['deps']['providers']
beforeAll(async () => {
  all = await startProviderSignIns()
  usual = all.service.deps.providers
})
afterEach(() => {
  all.service.deps.providers = usual
  for (const name of NAMES) for (const step of STEPS) all.far.answer(name, step)
})
afterAll(() => all.close())

const STEPS = ['token', 'profile', 'keys'] as const
/** One of each way to sign in: OpenID Connect with keys, OAuth 2.0, OAuth 1.0a. All providers share these clients. */
const ALL_FAILURES = ['google', 'github', 'twitter']
/** Broken profiles, which every provider's mapping has to read. */
const READ = ['answers an error', 'answers an error as if it were none', 'answers null']
/** Each provider with each endpoint it is asked at during the callback, and how that one fails. */
const ASKED = NAMES.flatMap((name) =>
  STEPS.filter((step) => hasStep(name, step)).map((step) => ({
    ...{ name, step },
    failures: Object.entries(BROKEN).filter(([how]) => ALL_FAILURES.includes(name) || READ.includes(how)),
  })),
)
const signIn = (name: string) => all.signIn(name, all.newAccount(name))

describe.each(ASKED)('$name, $step', ({ name, step, failures }) => {
  test.each(failures)('the upstream %s: the application learns of it, and no user signs in', async (_how, how) => {
    // Keys are kept for a while: only a new service asks for them.
    all.service.deps.providers = await createProviders(all.service.deps.config)
    all.far.answer(name, step, how)
    expect(refusalOf(await signIn(name))).toEqual(FAILED)
  })
})

describe.each(Object.entries({ 'before the answer': hangs, 'within the answer': hangsWithin }))(
  'a far side that hangs %s is given up',
  (_when, how) => {
    test.each(STEPS)('at its %s endpoint, whichever provider it is', async (step) => {
      const names = NAMES.filter((name) => hasStep(name, step))
      const begun = await Promise.all(
        names.map(async (name) => [name, await all.begin(name, all.newAccount(name))] as const),
      )
      all.service.deps.providers = await createProviders(all.service.deps.config, 2_000)
      for (const name of names) all.far.answer(name, step, how)
      const refusals = await Promise.all(begun.map(async ([name, { comeBack }]) => [name, refusalOf(await comeBack())]))
      expect(Object.fromEntries(refusals)).toEqual(Object.fromEntries(names.map((name) => [name, FAILED])))
    })
  },
)

describe.each(NAMES)('%s', (name) => {
  test('an account without an id is none', async () => {
    const { email } = all.newAccount(name)
    expect(refusalOf(await all.signIn(name, { email }))).toEqual(FAILED)
  })

  test('a user who refuses ends at the application with that', async () => {
    const brings = { error: 'access_denied', error_description: 'The user said no', denied: 'a-request-token' }
    const refusal = refusalOf(await all.signIn(name, all.newAccount(name), { brings }))
    expect(refusal).toMatchObject({ status: 302, to: 'https://site.example/app', error: 'access_denied' })
  })
})

/** One of them usually sends none. */
const WITH_ADDRESS = NAMES.filter((name) => name !== 'snapchat')

test.each(WITH_ADDRESS)('%s: an account without an address is refused', async (name) => {
  const { id } = all.newAccount(name)
  const description = 'Error getting user email from external provider'
  expect(refusalOf(await all.signIn(name, { id }))).toEqual({ ...FAILED, error_description: description })
})
