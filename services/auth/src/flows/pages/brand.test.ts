import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { perFile } from '@services/common/testing/per-file'
import { test as base, expect, onTestFinished } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { createApp } from '../../app.ts'
import { readConfig } from '../../config.ts'
import { brandCss, contrast } from '../../http/pages/brand.ts'
import { openPage, send } from './testing/pages.ts'

const LOGO = '<svg xmlns="http://www.w3.org/2000/svg"/>'
const file = join(tmpdir(), `logo-${process.pid}.svg`)

const test = base.extend<object & { service: TestService }>({
  service: perFile(async () => {
    await writeFile(file, LOGO)
    return startTestService({
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_PAGES_NAME: 'Rock & <Roll>',
      AUTH_PAGES_LOGO: file,
      AUTH_PAGES_COLOR: '#FA0',
      AUTH_PAGES_SUPPORT_URL: 'mailto:help@site.example',
    })
  }),
})

test('pages have the name, logo, color and help of the operator', async ({ service }) => {
  const page = await openPage(service, '/ui/sign-in')
  expect(page.text).toContain('<title>Sign in · Rock &amp; &lt;Roll&gt;</title>')
  expect(page.text).toContain('<img src="/ui/logo" alt=""><span>Rock &amp; &lt;Roll&gt;</span>')
  expect(page.links.Help).toBe('mailto:help@site.example')
  const logo = await service.get('/ui/logo')
  expect(logo).toMatchObject({ status: 200, text: LOGO, headers: { 'content-type': 'image/svg+xml' } })
  // Opened as a page of its own it runs nothing.
  expect(logo.headers['content-security-policy']).toContain("default-src 'none'")
  const [css = ''] = /\/ui\/assets\/brand\.css\?v=\w+/.exec(page.text) ?? []
  expect((await service.get(css)).text).toContain('--fill: #ffaa00')
})

test('a logo that cannot be loaded leaves the page whole, and no private address is asked', async ({ service }) => {
  const other = await service.with({ AUTH_PAGES_LOGO: 'https://127.0.0.1:1/logo.svg' })
  onTestFinished(other.close)
  expect(await other.get('/ui/logo')).toMatchObject({ status: 404 })
  expect((await openPage(other, '/ui/sign-in')).title).toBe('Sign in')
})

test('first visitors at the same time all get the logo', async ({ service }) => {
  const fresh = await service.with({})
  onTestFinished(fresh.close)
  const answers = await Promise.all([1, 2, 3].map(() => fresh.get('/ui/logo')))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
})

test('a logo at an address is loaded once and served from here, and after a failure tried again', async ({
  service,
}) => {
  const { deps, close } = await service.with({ AUTH_PAGES_LOGO: 'https://cdn.example/logo.svg' })
  const answers = [
    new Response('<script>1</script>', { headers: { 'content-type': 'text/html' } }),
    new Response(LOGO, { headers: { 'content-type': 'image/svg+xml; charset=utf-8' } }),
  ]
  const asked: string[] = []
  const fetch: typeof deps.egress.fetch = async (url) => {
    asked.push(String(url))
    return answers.shift() ?? new Response(null, { status: 503 })
  }
  const app = await createApp({ ...deps, egress: { ...deps.egress, fetch } })
  onTestFinished(async () => {
    await app.close()
    await close()
  })
  const logo = () => app.inject({ url: '/ui/logo', headers: { host: 'auth.example' } })
  for (let i = 0; i < 2; i++) expect((await logo()).statusCode).toBe(404)
  service.clock.advance({ seconds: 60 })
  for (let i = 0; i < 2; i++) {
    expect(await logo()).toMatchObject({ payload: LOGO, headers: { 'content-type': 'image/svg+xml' } })
  }
  expect(asked).toEqual(Array(2).fill('https://cdn.example/logo.svg'))
})

test('below a path, and at a further host, the links of pages lead there', async ({ service }) => {
  const below = await service.with({
    AUTH_API_EXTERNAL_URL: 'https://site.example/auth/v1',
    AUTH_MAILER_EXTERNAL_HOSTS: 'eu.example',
  })
  onTestFinished(below.close)
  const actionOf = async (url: string, headers = {}) => (await openPage(below, url, headers)).forms[0]?.action
  expect(await actionOf('/ui/sign-in')).toBe('/auth/v1/ui/sign-in')
  expect(await actionOf('/auth/v1/ui/sign-in')).toBe('/auth/v1/ui/sign-in')
  expect(await actionOf('/ui/sign-in', { 'x-forwarded-host': 'eu.example' })).toBe('/ui/sign-in')
})

test('only the listed ways are offered', async ({ service }) => {
  const codes = await service.with({ AUTH_HOSTED_PAGES_WAYS: 'code' })
  onTestFinished(codes.close)
  const page = await openPage(codes, '/ui/sign-in')
  expect(await send(codes, page, { address: 'ada@example.com' })).toMatchObject({ title: 'Enter the code' })
})

test.for(['#1d5fd6', '#ffffff', '#000000', '#ffee00', '#777777', '#00ff00'])(
  'text stays readable with the color %s, light and dark',
  (color) => {
    const css = brandCss(color)
    const grounds = [
      ['#ffffff', '#eef0f4'],
      ['#171a20', '#232831'],
    ]
    for (const [index, rule] of [...css.matchAll(/--accent: (\S+); --fill: (\S+); --on-fill: (\S+) /g)].entries()) {
      const [, accent = '', fill = '', text = ''] = rule
      const long = text === '#fff' ? '#ffffff' : '#000000'
      expect(contrast(fill, long)).toBeGreaterThanOrEqual(4.5)
      for (const ground of grounds[index] as string[]) expect(contrast(accent, ground)).toBeGreaterThanOrEqual(4.5)
    }
  },
)

test.for<[string, Record<string, string>]>([
  ['a way that is no enabled provider', { AUTH_HOSTED_PAGES_WAYS: 'password,google' }],
  ['no way', { AUTH_HOSTED_PAGES_WAYS: ' , ' }],
  ['a logo of another kind', { AUTH_PAGES_LOGO: '/etc/passwd' }],
  ['a logo without a file', { AUTH_PAGES_LOGO: '/nowhere/logo.svg' }],
  ['a logo by http', { AUTH_PAGES_LOGO: 'http://site.example/logo.svg' }],
  ['a color by its name', { AUTH_PAGES_COLOR: 'red' }],
  ['help by script', { AUTH_PAGES_SUPPORT_URL: 'javascript:alert(1)' }],
  ['a language without words', { AUTH_PAGES_LANGUAGES: 'en,fr' }],
])('the start refuses %s', ([, settings]) => {
  const [name = ''] = Object.keys(settings)
  expect(() => readConfig({ ...NEEDED, ...settings })).toThrow(name)
})

test('the first language of pages is the fallback; unset, it is that of the mails', () => {
  const languages = (settings: Record<string, string>) => readConfig({ ...NEEDED, ...settings }).config.pages.languages
  expect(languages({})).toEqual(['en', 'de'])
  expect(languages({ AUTH_MAILER_DEFAULT_LOCALE: 'de', AUTH_MAILER_LOCALES: 'fr' })).toEqual(['de'])
  expect(languages({ AUTH_PAGES_LANGUAGES: 'de,en' })).toEqual(['de', 'en'])
})

const NEEDED = {
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example',
  AUTH_DATABASE_URL: 'postgres://localhost/auth',
  AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
  AUTH_SMTP_HOST: '127.0.0.1',
  AUTH_SMTP_PORT: '25',
  AUTH_SMTP_ADMIN_EMAIL: 'auth@site.example',
}
