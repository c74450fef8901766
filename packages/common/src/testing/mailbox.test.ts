import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LARGEST_MESSAGE_BYTES } from '../dev/inbox/smtp-sink.ts'
import { type Mailbox, startMailbox } from './mailbox.ts'

let mailbox: Mailbox

beforeEach(async () => {
  mailbox = await startMailbox()
})

afterEach(() => mailbox.close())

test('a mail sent over SMTP is there with its parts, links and envelope', async () => {
  const source = [
    'From: =?utf-8?q?Caf=C3=A9?= <cafe@example.com>',
    'To: someone-else@example.com',
    'Subject: =?utf-8?b?R3LDvMOfZQ==?=',
    'Content-Type: multipart/alternative; boundary=b',
    '',
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Open https://example.com/verify?token=1.',
    '--b',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<a href="https://example.com/verify?token=1&amp;type=signup">Confirm</a>',
    '--b--',
  ].join('\r\n')
  expect(await send(mailbox, 'ada@example.com', source)).toBe(250)

  expect(await mailbox.waitFor('Ada@Example.com')).toMatchObject({
    from: 'Café <cafe@example.com>',
    to: ['ada@example.com'],
    subject: 'Grüße',
    text: 'Open https://example.com/verify?token=1.',
    html: expect.stringContaining('Confirm'),
    links: ['https://example.com/verify?token=1&type=signup', 'https://example.com/verify?token=1'],
  })
})

test('waiting finds a later mail, and only one after the given', async () => {
  const waiting = mailbox.waitFor('ada@example.com')
  await send(mailbox, 'bob@example.com', 'Subject: not this\r\n\r\nx')
  await send(mailbox, 'ada@example.com', 'Subject: first\r\n\r\nx')
  const first = await waiting
  const next = mailbox.waitFor('ada@example.com', { after: first })
  await send(mailbox, 'ada@example.com', 'Subject: second\r\n\r\nx')
  expect([first.subject, (await next).subject]).toEqual(['first', 'second'])
})

test('an error for a missing mail lists the received ones', async () => {
  await send(mailbox, 'bob@example.com', 'Subject: for Bob\r\n\r\nx')
  await expect(mailbox.waitFor('ada@example.com', { timeoutMs: 20 })).rejects.toThrow(
    /No mail to ada@example.com within 20 ms.*\n.*to bob@example.com: for Bob/,
  )
})

test('a server that is down refuses the connection, then is back on the same port', async () => {
  await mailbox.refuse()
  await expect(send(mailbox, 'ada@example.com')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await mailbox.accept()
  expect(await send(mailbox, 'ada@example.com')).toBe(250)
})

test.each([
  { code: 421, at: 'connection' },
  { code: 451, at: 'sender' },
  { code: 550, at: 'recipient' },
  { code: 452, at: 'message' },
] as const)('answers $code at $at and keeps nothing', async ({ code, at }) => {
  await mailbox.answer(code, at)
  expect(await send(mailbox, 'ada@example.com')).toBe(code)
  expect(mailbox.messages()).toEqual([])
  await mailbox.accept()
  expect(await send(mailbox, 'ada@example.com')).toBe(250)
})

test('a hanging server sends nothing, and disconnects its clients when it accepts again', async () => {
  await mailbox.hang()
  const socket = connect(mailbox.port, mailbox.host)
  const firstWord = once(socket, 'data').then(() => 'spoke')
  const end = once(socket, 'close').then(() => 'closed')
  await once(socket, 'connect')
  await mailbox.accept()
  expect(await Promise.race([firstWord, end])).toBe('closed')
})

test.each([
  { at: 'sender', lastHeard: 250 },
  { at: 'message', lastHeard: 354 },
] as const)('breaks the connection at $at, after $lastHeard, and keeps nothing', async ({ at, lastHeard }) => {
  await mailbox.drop(at)
  expect(await send(mailbox, 'ada@example.com')).toBe(lastHeard)
  expect(mailbox.messages()).toEqual([])
  await mailbox.accept()
  await send(mailbox, 'ada@example.com')
  expect(mailbox.messages()).toHaveLength(1)
})

test('any credentials are accepted', async () => {
  const dialogue = await converse(mailbox, ['EHLO me', `AUTH PLAIN ${btoa('\0user\0secret')}`])
  expect(dialogue.at(-1)).toMatch(/^235 /)
})

test('a message over the limit is refused and not kept', async () => {
  const source = `Subject: huge\r\n\r\n${'x'
    .repeat(998)
    .concat('\r\n')
    .repeat(LARGEST_MESSAGE_BYTES / 1000)}${'y'.repeat(60_000)}`
  expect(await send(mailbox, 'ada@example.com', source)).toBe(552)
  expect(mailbox.messages()).toEqual([])
})

test('only the newest 500 are kept', async () => {
  const mails = Array.from({ length: 502 }, (_, n) => mailCommands('ada@example.com', `Subject: ${n}\r\n\r\nx`))
  await converse(mailbox, ['EHLO me', ...mails.flat()])
  const subjects = mailbox.messages().map((message) => message.subject)
  expect([subjects.length, subjects.at(0), subjects.at(-1)]).toEqual([500, '501', '2'])
})

const mailCommands = (to: string, source: string) => [
  'MAIL FROM:<app@example.com>',
  `RCPT TO:<${to}>`,
  'DATA',
  `${source}\r\n.`,
]

/** The code of the last answer: 250 when the mail was taken. */
async function send({ host, port }: Mailbox, to: string, source = 'Subject: hi\r\n\r\nx'): Promise<number> {
  const dialogue = await converse({ host, port }, ['EHLO me', ...mailCommands(to, source)])
  return Number(dialogue.at(-1)?.slice(0, 3))
}

/** Says each command after the answer to the one before, and stops at the first refusal. Returns the answers. */
async function converse({ host, port }: Pick<Mailbox, 'host' | 'port'>, commands: string[]): Promise<string[]> {
  const socket = connect(port, host)
  const answers: string[] = []
  const remaining = [...commands]
  try {
    for await (const line of createInterface({ input: socket })) {
      if (line[3] === '-') continue
      answers.push(line)
      const command = remaining.shift()
      if (command === undefined || Number(line.slice(0, 3)) >= 400) break
      socket.write(`${command}\r\n`)
    }
  } finally {
    socket.destroy()
  }
  if (socket.errored) throw socket.errored
  return answers
}
