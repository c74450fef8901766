import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type MeterProvider, metrics } from '@opentelemetry/api'
import { ConfigError } from '@services/common/config/variables'
import { afterEach, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { startWorker } from '../../worker.ts'

const password = 'correct horse'
const opened: (() => unknown)[] = []
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close()
})

async function start(settings: Record<string, string>): Promise<TestService> {
  const service = await startTestService(settings)
  opened.push(service.close)
  return service
}

let count = 0
/** The confirmation mail of a new user. */
async function mailOf(service: TestService, { data = {}, language = '' } = {}) {
  const email = `user-${++count}@example.com`
  const headers: Record<string, string> = language ? { 'accept-language': language } : {}
  expect((await service.post('/signup', { email, password, data }, headers)).status).toBe(200)
  return service.mailbox.waitFor(email)
}

async function write(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'mail-templates-'))
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  return folder
}

describe('a template file', () => {
  test('makes the HTML, with values escaped; the text part is made from it', async () => {
    const folder = await write({
      'a.html': `<html><head><title>x</title><style>p {}</style></head><body><p>Hi {{ if .Data.name }}{{ .Data.name }}{{ else }}you{{ end }},</p>
        <ul>{{ range .Data.roles }}<li>{{ . }}</li>{{ end }}</ul><p><a href="{{ .ConfirmationURL }}">Confirm</a></p>{{ .Nothing }}</body></html>`,
    })
    const service = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: join(folder, 'a.html') })
    const { html, text } = await mailOf(service, { data: { name: '<b>"Ada"', roles: ['one', 'two & three'] } })
    expect(html).toContain('Hi &lt;b&gt;&quot;Ada&quot;,')
    expect(html).toMatch(
      /<a href="https:\/\/auth\.example\/verify\?token=[\w-]+&amp;type=signup&amp;redirect_to=https:\/\/site\.example">/,
    )
    expect(text).toMatch(
      /^Hi <b>"Ada",\n\n- one\n- two & three\n\nConfirm \(https:\/\/auth\.example\/verify\?token=\S+\)$/,
    )
  })

  test('of another language is taken by user metadata, then by Accept-Language, then by default', async () => {
    const folder = await write({
      'a.en.html': 'english {{ .ConfirmationURL }}',
      'a.de.html': 'deutsch {{ .ConfirmationURL }}',
      'a.pt-br.html': 'português {{ .ConfirmationURL }}',
    })
    const service = await start({
      AUTH_MAILER_TEMPLATES_CONFIRMATION: join(folder, 'a.{locale}.html'),
      AUTH_MAILER_LOCALES: 'en,de,pt-BR,fr',
    })
    const htmlOf = async (options: object) => (await mailOf(service, options)).html.split(' ')[0]
    expect(await htmlOf({})).toBe('english')
    expect(await htmlOf({ language: 'de-AT,en;q=0.5' })).toBe('deutsch')
    expect(await htmlOf({ language: 'de', data: { locale: 'pt_BR' } })).toBe('português')
    expect(await htmlOf({ data: { locale: '../../etc/passwd' }, language: 'xx' })).toBe('english')
    // French is written in, but has no file of its own.
    expect(await htmlOf({ language: 'fr' })).toBe('english')
  })

  test.for([
    [
      'that is broken',
      { 'a.html': 'a\n{{ if .ConfirmationURL }}' },
      'AUTH_MAILER_TEMPLATES_CONFIRMATION (en): line 2: expected {{ end }}',
    ],
    [
      'without link and code',
      { 'a.html': '<html>our app</html>' },
      'AUTH_MAILER_TEMPLATES_CONFIRMATION (en): expected one of {{ .ConfirmationURL }}',
    ],
    [
      'that is too large',
      { 'a.html': `{{ .Token }}${'x'.repeat(2_000)}` },
      'AUTH_MAILER_TEMPLATES_CONFIRMATION (en): is larger than 1000 bytes',
    ],
  ] as const)('%s keeps the service from starting, which says why', async ([, files, problem]) => {
    const folder = await write(files)
    const refused = startTestService({
      AUTH_MAILER_TEMPLATES_CONFIRMATION: join(folder, 'a.html'),
      AUTH_MAILER_TEMPLATES_RECOVERY: join(folder, 'a.html'),
      AUTH_MAILER_TEMPLATE_MAX_SIZE: '1000',
    })
    await expect(refused).rejects.toThrow(ConfigError)
    await expect(refused).rejects.toThrow(problem)
    await expect(refused).rejects.toThrow('AUTH_MAILER_TEMPLATES_RECOVERY')
  })

  test('an address with a user name or password keeps the service from starting: no request can carry them', async () => {
    const refused = startTestService({
      AUTH_MAILER_TEMPLATES_CONFIRMATION: 'https://ada:pa,ss@cdn.example/a.html',
      AUTH_MAILER_TEMPLATES_RECOVERY: 'https://ada@cdn.example/a.html',
    })
    const problem = (kind: string) => `AUTH_MAILER_TEMPLATES_${kind} must have no user name and password`
    await expect(refused).rejects.toThrow(problem('CONFIRMATION'))
    await expect(refused).rejects.toThrow(problem('RECOVERY'))
  })
})

describe('the built-in mails', () => {
  test('come in German for readers of German, subject included', async () => {
    const service = await start({})
    const mail = await mailOf(service, { language: 'de-CH, en;q=0.8' })
    expect(mail.subject).toBe('Bestätige deine E-Mail-Adresse')
    expect(mail.html).toContain('<html lang="de">')
    expect(mail.text).toContain('E-Mail-Adresse bestätigen: https://auth.example/verify?')
  })

  test('fall back to the default language', async () => {
    const service = await start({ AUTH_MAILER_DEFAULT_LOCALE: 'de' })
    expect((await mailOf(service, { language: 'fr' })).subject).toBe('Bestätige deine E-Mail-Adresse')
    expect((await mailOf(service, { language: 'en' })).subject).toBe('Confirm your email address')
  })

  test('take the subject of the setting in all languages, as one line, with nothing escaped', async () => {
    const service = await start({ AUTH_MAILER_SUBJECTS_CONFIRMATION: "{{ .Data.name }}'s code: {{ .Token }}" })
    const name = 'Ada\r\nBcc: evil@example.com\u2028\u0000'.replace('\u0000', '')
    const mail = await mailOf(service, { data: { name }, language: 'de' })
    expect(mail.subject).toMatch(/^Ada Bcc: evil@example\.com 's code: \d{6}$/)
    expect(mail.source).not.toMatch(/^Bcc:/m)
    expect((await mailOf(service, { data: { name: 'x'.repeat(4000) } })).subject).toHaveLength(251)
  })

  test('carry the headers of the setting, with the kind filled in', async () => {
    const service = await start({ AUTH_SMTP_HEADERS: '{"X-Tag": ["auth-$messageType", "b"], "X-One": "c"}' })
    const { source } = await mailOf(service)
    for (const header of ['X-Tag: auth-confirmation', 'X-Tag: b', 'X-One: c', 'Auto-Submitted: auto-generated']) {
      expect(source).toContain(header)
    }
  })
})

describe('a template from a URL', () => {
  const OURS = (word: string) => `<p>${word} <a href="{{ .ConfirmationURL }}">go</a></p>`

  async function serve(listener: RequestListener) {
    let requests = 0
    const server: Server = createServer((request, response) => {
      requests++
      listener(request, response)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    opened.push(() => {
      server.closeAllConnections()
      server.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { url, requests: () => requests }
  }

  test('is used, loaded again when it is too old, and kept when that fails', async () => {
    let answer = { status: 200, body: OURS('first') }
    const { url, requests } = await serve((_request, response) => response.writeHead(answer.status).end(answer.body))
    const service = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: `${url}/a.html` })
    const word = async () => /<p>(\w+) /.exec((await mailOf(service)).html)?.[1]
    expect(await word()).toBe('first')
    answer = { status: 200, body: OURS('second') }
    service.clock.advance({ seconds: 599 })
    expect(await word()).toBe('first')
    service.clock.advance({ seconds: 2 })
    expect(await word()).toBe('second')
    expect(requests()).toBe(2)

    service.clock.advance({ seconds: 601 })
    for (const broken of [
      { status: 500, body: 'no' },
      { status: 200, body: '{{ if .ConfirmationURL }}' },
      { status: 200, body: '<html>the page of a single-page application</html>' },
      { status: 204, body: '' },
      { status: 200, body: `{{ .Token }}${'x'.repeat(1_000_000)}` },
    ]) {
      answer = broken
      expect(await word()).toBe('second')
      service.clock.advance({ seconds: 11 })
    }
    expect(requests()).toBe(7)
    answer = { status: 200, body: OURS('third') }
    expect(await word()).toBe('third')
  })

  test('that cannot be loaded is the built-in one, logged and counted, and tried again no sooner than the setting says', async () => {
    const counted: unknown[] = []
    const counter = { add: (value: number, attributes: object) => counted.push({ value, ...attributes }) }
    const createCounter = (name: string) => (name === 'auth.mail_template_failures' ? counter : { add() {} })
    const createObservableGauge = () => ({ addCallback() {} })
    const meter = { createCounter, createObservableGauge }
    metrics.setGlobalMeterProvider({ getMeter: () => meter } as unknown as MeterProvider)
    opened.push(() => metrics.disable())
    let body: string | undefined
    const { url, requests } = await serve((_request, response) => response.writeHead(body ? 200 : 503).end(body))
    const logFile = join(await write({}), 'log')
    const service = await start({
      AUTH_MAILER_TEMPLATES_CONFIRMATION: `${url}/secret-path`,
      AUTH_LOG_LEVEL: 'error',
      AUTH_LOG_FILE: logFile,
    })
    expect((await mailOf(service)).html).toContain('Confirm your email address')
    expect((await mailOf(service)).html).toContain('Confirm your email address')
    expect(requests()).toBe(1)
    expect(counted).toEqual([{ value: 1, kind: 'confirmation', locale: 'en' }])
    // Lines are written together, a tenth of a second late.
    await expect.poll(() => readFile(logFile, 'utf8')).toContain('reason')
    const log = await readFile(logFile, 'utf8')
    expect(log).toContain('"reason":"its server answered 503"')
    expect(log).not.toContain('secret-path')
    body = OURS('ours')
    service.clock.advance({ seconds: 11 })
    expect((await mailOf(service)).html).toContain('ours')
  })

  test('that cuts the connection, or is not there at all, is the built-in one', async () => {
    const { url } = await serve((request) => request.socket.destroy())
    const service = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: `${url}/a.html` })
    expect((await mailOf(service)).html).toContain('Confirm your email address')
    const other = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: 'http://127.0.0.1:1/a.html' })
    expect((await mailOf(other)).html).toContain('Confirm your email address')
  })

  test('is loaded once for many mails at once', async () => {
    let release = () => {}
    const { url, requests } = await serve((_request, response) => {
      release = () => response.end(OURS('ours'))
    })
    const service = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: `${url}/a.html` })
    const mails = [mailOf(service), mailOf(service), mailOf(service)]
    const queued = async () => (await service.deps.db.selectFrom('messages').select('id').execute()).length
    await expect.poll(queued).toBe(3)
    await expect.poll(requests).toBe(1)
    release()
    for (const { html } of await Promise.all(mails)) expect(html).toContain('ours')
    expect(requests()).toBe(1)
  })

  test('whose server hangs delays mails once, which take the built-in one, or the last good one', async () => {
    const held: ServerResponse[] = []
    let isHanging = true
    const { url, requests } = await serve((_request, response) => {
      if (isHanging) held.push(response)
      else response.end(OURS('ours'))
    })
    const service = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: `${url}/a.html`, AUTH_WORKERS_ENABLED: 'false' })
    opened.push(await startWorker(service.deps, { templateWaitMs: 10 }))
    for (let i = 0; i < 3; i++) expect((await mailOf(service)).html).toContain('Confirm your email address')
    expect([requests(), held.length]).toEqual([1, 1])
    isHanging = false
    held[0]?.end(OURS('late'))
    await expect.poll(async () => (await mailOf(service)).html).toContain('late')
    isHanging = true
    service.clock.advance({ seconds: 601 })
    for (let i = 0; i < 3; i++) expect((await mailOf(service)).html).toContain('late')
    expect([requests(), held.length]).toEqual([2, 2])
  })

  test('has one address per language; the default one stands in for those that are missing', async () => {
    const { url } = await serve((request, response) => {
      const isThere = request.url === '/en.html' || request.url === '/de.html'
      response.writeHead(isThere ? 200 : 404).end(OURS(request.url ?? ''))
    })
    const service = await start({
      AUTH_MAILER_TEMPLATES_CONFIRMATION: `${url}/{locale}.html`,
      AUTH_MAILER_LOCALES: 'en,de,fr',
    })
    expect((await mailOf(service)).html).toContain('/en.html')
    expect((await mailOf(service, { language: 'de' })).html).toContain('/de.html')
    expect((await mailOf(service, { language: 'fr' })).html).toContain('/en.html')
  })

  test('may be a path on the site', async () => {
    const { url } = await serve((request, response) => response.end(OURS(request.url ?? '')))
    const service = await start({ AUTH_SITE_URL: `${url}/app/`, AUTH_MAILER_TEMPLATES_CONFIRMATION: '/mails/a.html' })
    expect((await mailOf(service)).html).toContain('/app/mails/a.html')
  })
})

test('a template that produces too much with the data of a user gives way to the built-in one', async () => {
  const folder = await write({
    'a.html':
      '{{ .ConfirmationURL }}{{ range .Data.l }}{{ range $.Data.l }}{{ range $.Data.l }}x{{ end }}{{ end }}{{ end }}',
  })
  const service = await start({ AUTH_MAILER_TEMPLATES_CONFIRMATION: join(folder, 'a.html') })
  const { html } = await mailOf(service, { data: { l: Array.from({ length: 500 }, () => 1) } })
  expect(html).toContain('Confirm your email address')
})
