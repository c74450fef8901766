import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'
import { createMessages } from './inbox/inbox-messages.ts'
import { createInboxWeb } from './inbox/inbox-web.ts'
import { keepMessages } from './inbox/kept-messages.ts'
import { type Inbox, startInbox } from './inbox.ts'

const HOSTILE = `<script>alert('x')</script>"><img src=x onerror=alert(1)>`

const TO_ADA = { from: 'app@example.com', to: ['ada@example.com'] }

let inbox: Inbox

beforeEach(async () => {
  inbox = await startInbox({ smtpPort: 0, webPort: 0 })
})

afterEach(() => inbox.close())

test('page and JSON are served at the published URL', async () => {
  const page = await fetch(inbox.webUrl)
  expect(await page.text()).toContain('No mail yet')
  expect(await (await fetch(`${inbox.webUrl}/api/messages`)).json()).toEqual({ messages: [] })
})

test.each([
  { name: 'SMTP', options: (port: number) => ({ smtpPort: port, webPort: 0 }), variable: 'INBOX_SMTP_PORT' },
  { name: 'web', options: (port: number) => ({ smtpPort: 0, webPort: port }), variable: 'INBOX_WEB_PORT' },
])('an error for a taken $name port names the port and its variable', async ({ options, variable }) => {
  const port = await findFreePort()
  const occupant = createServer().listen(port, '127.0.0.1')
  await once(occupant, 'listening')
  await expect(startInbox(options(port))).rejects.toThrow(`Port ${port} is in use. Set ${variable} to another one.`)
  occupant.close()
})

test('no content of a mail becomes markup of the page', async () => {
  const app = await webWith([
    {
      to: `"${HOSTILE}"@example.com`,
      source: `From: ${HOSTILE} <a@example.com>\r\nSubject: ${HOSTILE}\r\n\r\n${HOSTILE} https://e.example/"onclick="x`,
    },
  ])
  for (const url of ['/', '/messages/1', '/messages/1?view=text', '/messages/1?view=source']) {
    const { body } = await app.inject(url)
    expect(body).toContain('&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;')
    expect(body).not.toContain('<script>')
    expect(body).not.toContain('<img')
    expect(body).not.toContain('"onclick')
  }
})

test('the HTML of a mail is shown without scripts and without access to the page', async () => {
  const app = await webWith([{ source: `Content-Type: text/html\r\n\r\n<script>parent.alert(1)</script><p>Hello</p>` }])
  const page = await app.inject('/messages/1')
  const mail = await app.inject('/messages/1/html')
  expect(page.body).toMatch(/<iframe sandbox="allow-popups allow-popups-to-escape-sandbox"/)
  expect(page.headers['content-security-policy']).toContain("script-src 'self'")
  expect(mail.headers['content-security-policy']).toMatch(
    /^sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'/,
  )
})

test('addresses in the text are links, but only http and https', async () => {
  const app = await webWith([{ source: 'Subject: x\r\n\r\nSee https://e.example/a?b=1&c=2. Or javascript:alert(1)' }])
  const { body } = await app.inject('/messages/1?view=text')
  expect(body).toContain('<a href="https://e.example/a?b=1&amp;c=2" target="_blank"')
  expect(body).not.toContain('href="javascript:')
})

test('JSON lists by recipient without sources, gives one with its source, and empties', async () => {
  const app = await webWith([
    { to: 'ada@example.com', source: 'Subject: one\r\n\r\nx' },
    { to: 'bob@example.com', source: 'Subject: two\r\n\r\nx' },
  ])
  const listed = (await app.inject('/api/messages?to=ada@example.com')).json()
  expect(listed).toMatchObject({ messages: [{ id: 1, subject: 'one', to: ['ada@example.com'] }] })
  expect(listed.messages[0]).not.toHaveProperty('source')
  expect((await app.inject('/api/messages/2')).json()).toMatchObject({ source: 'Subject: two\r\n\r\nx' })
  expect((await app.inject({ method: 'DELETE', url: '/api/messages' })).statusCode).toBe(204)
  expect((await app.inject('/api/messages')).json()).toEqual({ messages: [] })
  expect((await app.inject('/api/messages/2')).statusCode).toBe(404)
})

describe('mails kept over a restart', () => {
  let folder: string
  let file: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'inbox-test-'))
    file = join(folder, 'inbox/messages.json')
  })

  afterEach(() => rm(folder, { recursive: true }))

  const open = async () => {
    const keeper = await keepMessages(file)
    return { keeper, messages: createMessages(keeper.loaded, keeper.save) }
  }

  test('are the same, newest first, and later ones get higher ids', async () => {
    const first = await open()
    for (const subject of ['one', 'two']) await first.messages.add(Buffer.from(`Subject: ${subject}\r\n\r\nx`), TO_ADA)
    const before = first.messages.list()
    await first.keeper.flush()
    const second = await open()
    expect(second.messages.list()).toEqual(before)
    await second.messages.add(Buffer.from('Subject: three\r\n\r\nx'), TO_ADA)
    expect(second.messages.list().map(({ id, subject }) => [id, subject])).toEqual([
      [3, 'three'],
      [2, 'two'],
      [1, 'one'],
    ])
    await second.keeper.flush()
  })

  test('are gone when the inbox was cleared, and only the owner may read the file', async () => {
    const first = await open()
    await first.messages.add(Buffer.from('Subject: secret link\r\n\r\nx'), TO_ADA)
    await first.keeper.flush()
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    first.messages.clear()
    await first.keeper.flush()
    expect((await open()).messages.list()).toEqual([])
    expect(await readdir(join(folder, 'inbox'))).toEqual(['messages.json'])
  })

  test.each([
    { what: 'half a file', content: '[{"id":1,"subject":"o' },
    { what: 'mails of another shape', content: '[{"id":1}]' },
    { what: 'no list', content: '{"messages":null}' },
  ])('$what is an empty inbox that works', async ({ content }) => {
    await mkdir(dirname(file))
    await writeFile(file, content)
    const { messages, keeper } = await open()
    expect(messages.list()).toEqual([])
    await messages.add(Buffer.from('Subject: one\r\n\r\nx'), TO_ADA)
    await keeper.flush()
    expect((await open()).messages.list()).toMatchObject([{ id: 1, subject: 'one' }])
  })
})

test('the newest 500 mails or 16 MiB are kept, and always the newest mail', async () => {
  const messages = createMessages()
  const add = (bytes: number) => messages.add(Buffer.from(`Subject: x\r\n\r\n${'x'.repeat(bytes)}`), TO_ADA)
  for (let n = 0; n < 502; n++) await add(1)
  expect(messages.list().map(({ id }) => id)).toEqual(Array.from({ length: 500 }, (_, index) => 502 - index))
  for (let n = 0; n < 3; n++) await add(6 * 1024 ** 2)
  expect(messages.list().map(({ id }) => id)).toEqual([505, 504])
  await add(17 * 1024 ** 2)
  expect(messages.list().map(({ id }) => id)).toEqual([506])
})

test('DNS rebinding: a page under another host name reads nothing', async () => {
  const app = await webWith([{ source: 'Subject: secret link\r\n\r\nx' }])
  const answer = await app.inject({ url: '/api/messages', headers: { host: 'evil.example:8025' } })
  expect(answer.statusCode).toBe(403)
  expect(answer.body).not.toContain('secret')
})

async function webWith(mails: { to?: string; source: string }[]) {
  const messages = createMessages()
  for (const { to = 'ada@example.com', source } of mails) {
    await messages.add(Buffer.from(source), { from: 'app@example.com', to: [to] })
  }
  return createInboxWeb(messages, 'smtp://127.0.0.1:1025')
}
