// Answers below /ui are pages, whatever was sent.
import { PAGE_POLICY } from '@services/common/pages/document'
import { perFile } from '@services/common/testing/per-file'
import type { InjectOptions } from 'fastify'
import { test as base, expect, onTestFinished } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { CONFIRM_PATH, CONSENT_PATH } from '../../config/pages/page-paths.ts'
import { accountPages } from './account/account-pages.ts'
import { allPages } from './all-pages.http.ts'
import { PAGE_PATHS } from './pages.routes.ts'
import { ORIGIN, openPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      ...{ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_OAUTH_SERVER_ENABLED: 'true' },
      AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '',
    }),
  ),
})

/** Statuses of pages that lack what their address names: a link's token, a request of an application. */
const WITHOUT_SUBJECT: Record<string, number> = { [CONFIRM_PATH]: 400, [CONSENT_PATH]: 404 }

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

test('each page is a route of its own, by whose name logs and metrics count it', ({ service }) => {
  expect([...PAGE_PATHS].sort()).toEqual(allPages.map(({ path }) => path).sort())
  for (const url of PAGE_PATHS) {
    for (const method of ['GET', 'POST'] as const)
      expect([url, service.app.hasRoute({ method, url })]).toEqual([url, true])
  }
})

test.for<[string, number, Omit<InjectOptions, 'url'>, suffix?: string]>([
  ['an address below it', 404, { method: 'GET' }, '/nowhere'],
  ['a form to an address below it', 404, { method: 'POST', headers: FORM, payload: 'a=b' }, '/nowhere'],
  ['another method', 405, { method: 'PUT', headers: FORM, payload: 'a=b' }],
  ['a large form', 413, { method: 'POST', headers: FORM, payload: 'a'.repeat(70_000) }],
  ['a large body of another type', 413, { method: 'POST', payload: { a: 'a'.repeat(2_000_000) } }],
  ['a compressed form', 415, { method: 'POST', headers: { ...FORM, 'content-encoding': 'gzip' }, payload: 'a=b' }],
  ['JSON', 403, { method: 'POST', payload: { address: 'ada@example.com' } }],
  ['a form without a body', 403, { method: 'POST' }],
])(
  'at each page %s is answered by a page, with the policy of pages',
  async ([, status, request, below], { service }) => {
    for (const { path, post } of allPages) {
      const url = path + (below ?? '')
      const answer = await service.app.inject({
        ...request,
        url,
        headers: { host: 'auth.example', ...request.headers },
      })
      // Without a session a page of the account leads to the sign-in.
      if (answer.statusCode === 303) {
        expect([url, answer.headers.location]).toEqual([url, expect.stringMatching(/^\/ui\/sign-in/)])
        continue
      }
      // A page without a form takes none.
      const unproven = post ? (WITHOUT_SUBJECT[path] ?? 403) : 405
      expect([url, answer.statusCode]).toEqual([url, status === 403 ? unproven : status])
      expectPage(url, { ...answer, text: answer.payload })
    }
  },
)

test('a refusal is in the language of the user, else in that of the browser', async ({ service }) => {
  const { auth } = await service.signedIn('german@example.com')
  await service.put('/user', { data: { locale: 'de' } }, auth)
  const browser = service.otherBrowser()
  const asked = await send(browser, await openPage(browser, '/ui/sign-in'), { address: 'german@example.com' })
  await send(browser, asked, { password: 'correct horse' })
  for (const [door, title] of [
    [browser, 'Das hat nicht geklappt'],
    [service.otherBrowser(), 'That did not work'],
  ] as const) {
    const refused = await openPage(door, '/ui/nowhere', { 'accept-language': 'en' })
    expect([refused.status, refused.title]).toEqual([404, title])
  }
})

test('a failure of ours is answered by a page, at each page that looks for the user', async ({ service }) => {
  const broken = await service.with({})
  onTestFinished(broken.close)
  await service.signedIn('broken@example.com')
  const browser = broken.otherBrowser()
  const asked = await send(browser, await openPage(browser, '/ui/sign-in'), { address: 'broken@example.com' })
  await send(browser, asked, { password: 'correct horse' })
  broken.deps.findCaller = () => Promise.reject(new Error('broken'))
  const failed: string[] = []
  for (const { path } of allPages) {
    const answer = await browser.get(path)
    if (answer.status !== 500) continue
    failed.push(path)
    expectPage(path, answer)
    expect(answer.text).toContain('Reference: ')
  }
  expect(failed).toEqual(expect.arrayContaining(['/ui/sign-in', ...accountPages.map(({ path }) => path)]))
})

function expectPage(url: string, { headers, text }: { headers: Record<string, unknown>; text: string }) {
  expect([url, headers['content-type'], headers['content-security-policy']]).toEqual([
    ...[url, 'text/html; charset=utf-8', PAGE_POLICY],
  ])
  expect(text).toMatch(/<h1>.+<\/h1>[\s\S]*role="alert"/)
}

test.for<[string, string, string]>([
  ['a link', '/verify?token=spent&type=signup', 'This code is wrong or has expired.'],
  ['a provider', '/callback?code=a&state=unknown', 'Please start again.'],
])(
  'where the site is a page of ours, a refusal of %s is a sentence on a page',
  async ([, address, words], { service }) => {
    const settings = { AUTH_API_EXTERNAL_URL: 'https://auth.example', AUTH_SITE_URL: 'https://auth.example/ui/account' }
    const at = await service.with(settings)
    onTestFinished(() => at.close())
    const { location = '' } = (await at.get(address)).headers
    expect(location).toMatch(/^https:\/\/auth\.example\/ui\/arrive\?error_code=\w+$/)
    const page = await openPage(at, String(location).replace(ORIGIN, ''))
    expect(page).toMatchObject({ status: 400, title: 'That did not work', problem: expect.stringContaining(words) })
  },
)
