import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findFreePort } from './dev-ports.ts'
import { createMessages } from './inbox/inbox-messages.ts'
import { createInboxWeb } from './inbox/inbox-web.ts'
import { type Inbox, startInbox } from './inbox.ts'

const HOSTILE = `<script>alert('x')</script>"><img src=x onerror=alert(1)>`

let inbox: Inbox

beforeEach(async () => {
  inbox = await startInbox({ smtpPort: 0, webPort: 0 })
})

afterEach(() => inbox.close())

test('page and JSON are served on the address it gives', async () => {
  const page = await fetch(inbox.webUrl)
  expect(await page.text()).toContain('No mail yet')
  expect(await (await fetch(`${inbox.webUrl}/api/messages`)).json()).toEqual({ messages: [] })
})

test.each([
  { name: 'SMTP', options: (port: number) => ({ smtpPort: port, webPort: 0 }), variable: 'INBOX_SMTP_PORT' },
  { name: 'web', options: (port: number) => ({ smtpPort: 0, webPort: port }), variable: 'INBOX_WEB_PORT' },
])('a taken $name port is said by number, with the variable that changes it', async ({ options, variable }) => {
  const port = await findFreePort()
  const occupant = createServer().listen(port, '127.0.0.1')
  await once(occupant, 'listening')
  await expect(startInbox(options(port))).rejects.toThrow(`Port ${port} is in use. Set ${variable} to another one.`)
  occupant.close()
})

test('nothing a mail holds becomes markup of the page', async () => {
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

test('a web page that points its own name at this machine reads nothing', async () => {
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
