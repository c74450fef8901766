import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import {
  begun,
  CALLBACK,
  hostedSettings,
  type Parameters,
  registered,
} from '../../oauth-server/testing/applications.ts'
import type { SeenPage } from '../testing/pages.ts'
import { visitor } from './testing/visitor.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(async () =>
    startTestService({
      ...(await hostedSettings()),
      AUTH_OAUTH_SERVER_RESOURCES: 'https://api.example/films',
      AUTH_OAUTH_SERVER_SCOPES: JSON.stringify([
        { name: 'films', description: 'Play films', descriptions: { de: 'Filme abspielen' } },
      ]),
    }),
  ),
})

/** A visitor, and a client that asks for requests; `ask` gives the address of the page. */
async function asked(service: TestService, parameters: Parameters = {}, headers: Record<string, string> = {}) {
  const { clientId } = await registered(service, { client_name: 'Reports <b>', scope: 'openid email films' })
  const ask = async (more: Parameters = {}) =>
    `/ui/consent?authorization_id=${await begun(service, clientId, { ...parameters, ...more })}`
  return { ...(await visitor(service, headers)), ask, clientId }
}

/** Parameters that the browser takes back to the application. */
const answerOf = ({ location = '' }: SeenPage) => {
  expect(location.startsWith(`${CALLBACK}?`), location).toBe(true)
  return Object.fromEntries(new URL(location).searchParams)
}

test('a signed-out user signs in first, sees application, scopes and host, and goes back with a code; the next time without a page', async ({
  service,
}) => {
  const { ask, open, signIn, press, email } = await asked(service, { scope: 'email films', state: 's 1' })
  const resource = 'https://api.example/films'
  const entry = await open(await ask({ login_hint: email, resource }))
  expect([entry.title, entry.forms[0]?.fields.address]).toEqual(['Sign in', email])
  const page = await signIn(entry)
  expect(page.title).toBe('Allow access?')
  for (const text of ['Reports &lt;b&gt;', email, 'See your email address', 'Play films', 'app.example', resource]) {
    expect(page.text).toContain(text)
  }
  const left = await press(page, { answer: 'allow' })
  // A redirect would end at another origin, which the policy of the form refuses.
  expect(left.status).toBe(200)
  expect(answerOf(left)).toEqual({ code: expect.any(String), state: 's 1', iss: 'https://auth.example' })
  expect(answerOf(await press(page, { answer: 'allow' }))).toEqual(answerOf(left))
  expect(answerOf(await open(await ask())).code).toEqual(expect.any(String))
  expect((await open(await ask({ prompt: 'consent' }))).title).toBe('Allow access?')
})

test('a denial goes back as access_denied; a request that is answered, unknown or of another user has no form', async ({
  service,
}) => {
  const { ask, open, signIn, press } = await asked(service, {}, { 'accept-language': 'de' })
  const address = await ask({ scope: 'films' })
  const page = await signIn(await open(address))
  expect(page.text).toContain('Filme abspielen')
  const other = await asked(service)
  const left = await press(page, { answer: 'deny' })
  expect(answerOf(left)).toMatchObject({ error: 'access_denied', state: 'st' })
  for (const gone of [address, `/ui/consent?authorization_id=${'a'.repeat(32)}`, '/ui/consent']) {
    const { status, problem, forms } = await open(gone)
    expect([gone, status, problem, forms]).toEqual([gone, 404, expect.stringContaining('Anfrage ist abgelaufen'), []])
  }
  await other.signIn(await other.open(await other.ask()))
  const theirs = await ask()
  await open(theirs)
  expect(await other.open(theirs)).toMatchObject({ status: 404, forms: [] })
})

test('the owner of a request can give it up to another account of theirs', async ({ service }) => {
  const { ask, open, signIn, press } = await asked(service)
  const page = await signIn(await open(await ask()))
  const other = await visitor(service)
  const entry = await press(page, {}, 'Use another account')
  expect(entry.title).toBe('Sign in')
  const again = await press(await press(entry, { address: other.email }), { password: 'correct horse' })
  expect(again.text).toContain(other.email)
  expect(answerOf(await press(again, { answer: 'allow' })).code).toEqual(expect.any(String))
})

test('prompt=none answers without a page: login_required, consent_required, and a code after a consent', async ({
  service,
}) => {
  const { ask, open, signIn, press } = await asked(service)
  expect(answerOf(await open(await ask({ prompt: 'none' })))).toMatchObject({ error: 'login_required', state: 'st' })
  const page = await signIn(await open(await ask()))
  expect(answerOf(await open(await ask({ prompt: 'none' })))).toMatchObject({ error: 'consent_required' })
  await press(page, { answer: 'allow' })
  expect(answerOf(await open(await ask({ prompt: 'none' }))).code).toEqual(expect.any(String))
  service.clock.advance({ seconds: 60 })
  const late = await open(await ask({ prompt: 'none', max_age: '10' }))
  expect(answerOf(late)).toMatchObject({ error: 'login_required' })
  const redirect_uri = 'http://127.0.0.1/cb'
  const native = await registered(service, { redirect_uris: [redirect_uri], token_endpoint_auth_method: 'none' })
  const request = async (prompt?: string) =>
    open(`/ui/consent?authorization_id=${await begun(service, native.clientId, { redirect_uri, prompt })}`)
  await press(await request(), { answer: 'allow' })
  expect((await request('none')).location).toContain('error=consent_required')
})

test.for([
  ['prompt', 'login'],
  ['max_age', '30'],
] as const)(
  'a request with %s=%s wants a new sign-in, even after a consent, and goes on after it',
  async ([name, value], { service }) => {
    const { ask, open, signIn, press } = await asked(service)
    await press(await signIn(await open(await ask())), { answer: 'allow' })
    service.clock.advance({ seconds: 60 })
    const entry = await open(await ask({ [name]: value }))
    expect([entry.title, entry.problem]).toEqual(['Sign in', 'This application wants you to sign in again.'])
    service.clock.advance({ seconds: 5 })
    expect(answerOf(await signIn(entry)).code).toEqual(expect.any(String))
  },
)

test('a request with acr_values=aal2 leads a user without a second factor to one, and nothing is approved before', async ({
  service,
}) => {
  const { ask, open, signIn } = await asked(service)
  const page = await signIn(await open(await ask({ acr_values: 'aal2' })))
  expect(page.title).toBe('Second factor')
  const { rows } = await service.deps.pool.query(
    'select status from oauth_authorizations order by created_at desc, id limit 1',
  )
  expect(rows).toEqual([{ status: 'pending' }])
})

test('a request that wants a new sign-in belongs to the account of it, not to the earlier one', async ({ service }) => {
  const { ask, open, signIn, press } = await asked(service)
  await signIn(await open(await ask()))
  service.clock.advance({ seconds: 60 })
  const entry = await open(await ask({ max_age: '30' }))
  expect(entry.title).toBe('Sign in')
  const other = await visitor(service)
  const page = await press(await press(entry, { address: other.email }), { password: 'correct horse' })
  expect([page.title, page.text]).toEqual(['Allow access?', expect.stringContaining(other.email)])
})

test('a form of another page approves nothing', async ({ service }) => {
  const { ask, open, signIn, press } = await asked(service)
  const page = await signIn(await open(await ask()))
  const refused = await press(page, { answer: 'allow', proof: 'x' })
  expect([refused.status, refused.title, refused.location]).toEqual([403, 'Allow access?', undefined])
})

test('an answer by form_post leaves to the page that posts it', async ({ service }) => {
  const { ask, open, signIn, press } = await asked(service, { response_mode: 'form_post' })
  const { location } = await press(await signIn(await open(await ask())), { answer: 'allow' })
  expect(location).toMatch(/^https:\/\/auth\.example\/oauth\/form-post\/\w+/)
})
