import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { startMailbox } from '@services/common/testing/mailbox'
import { afterEach, describe, expect, test } from 'vitest'
import { authHere } from '../../../test/command-line.ts'
import { testMail } from '../../flows/commands/mail-commands.ts'
import type { SmtpSettings } from './smtp.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

/** A server that answers each line by the first rule whose beginning it has. */
async function smtp(
  rules: Record<string, string>,
  greeting = '220 test',
  heard: (line: string) => void = () => {},
): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(`${greeting}\r\n`)
    socket.on('data', (chunk) => {
      heard(String(chunk).trim())
      const rule = Object.keys(rules).find((beginning) => String(chunk).startsWith(beginning))
      if (rule) socket.write(`${rules[rule]}\r\n`)
      else socket.destroy()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  return (server.address() as { port: number }).port
}

const settings = (port: number, more: Partial<SmtpSettings> = {}): SmtpSettings => ({
  host: '127.0.0.1',
  port,
  user: undefined,
  password: undefined,
  from: 'auth@site.example',
  senderName: 'Auth',
  tls: 'auto',
  headers: {},
  clientName: undefined,
  authority: undefined,
  ...more,
})

const EHLO = { EHLO: '250 hi' }
const LOGIN = { EHLO: '250 AUTH PLAIN' }

describe('a test mail that cannot be sent is explained: ', () => {
  test.for<[string, Record<string, string>, Partial<SmtpSettings>, string, string]>([
    [
      'TLS is required and not offered',
      { ...EHLO, STARTTLS: '502 no' },
      { tls: 'required' },
      'TLS failed',
      'AUTH_SMTP_TLS',
    ],
    ['TLS is offered and broken', { EHLO: '250 STARTTLS', STARTTLS: '220 go' }, {}, 'TLS failed', 'AUTH_SMTP_TLS'],
    [
      'the password is wrong',
      { ...LOGIN, AUTH: '535 who are you' },
      { user: 'a', password: 'b' },
      'refused the user name or password (535)',
      'AUTH_SMTP_PASS',
    ],
    [
      'the sender is refused',
      { ...EHLO, MAIL: '550 not you' },
      {},
      'refused the sender (550)',
      'AUTH_SMTP_ADMIN_EMAIL',
    ],
    [
      'the recipient is refused',
      { ...EHLO, MAIL: '250 ok', RCPT: '550 no such user' },
      {},
      'refused the recipient (550): ',
      'this address',
    ],
    ['the message is refused', { ...EHLO, MAIL: '250 ok', RCPT: '250 ok', DATA: '554 spam' }, {}, '(554)', 'message'],
    ['the greeting is a later', { QUIT: '221 bye' }, {}, 'cannot serve us now (421)', 'temporary answer'],
    ['the sender is deferred', { ...EHLO, MAIL: '451 later' }, {}, 'deferred the sender (451)', 'Try again'],
    [
      'the recipient is deferred',
      { ...EHLO, MAIL: '250 ok', RCPT: '451 greylisted' },
      {},
      'deferred the recipient (451): 451 greylisted',
      'temporary answer',
    ],
    [
      'the message is deferred',
      { ...EHLO, MAIL: '250 ok', RCPT: '250 ok', DATA: '452 full' },
      {},
      'deferred the message (452)',
      'temporary answer',
    ],
    [
      'the password cannot be checked now',
      { ...LOGIN, AUTH: '454 later' },
      { user: 'a', password: 'b' },
      '(454)',
      'temporary answer',
    ],
    [
      'the connection is cut over the message',
      { ...EHLO, MAIL: '250 ok', RCPT: '250 ok', DATA: '354 go' },
      {},
      'the connection failed or broke',
      'after the message, which may still have arrived. Try again',
    ],
    [
      'the connection is cut after the recipient',
      { ...EHLO, MAIL: '250 ok' },
      {},
      'the connection failed or broke',
      'after RCPT',
    ],
    ['the connection is cut', {}, {}, 'the connection failed or broke', 'AUTH_SMTP_HOST'],
  ])('%s', async ([what, rules, more, problem, remedy]) => {
    const greeting = what === 'the greeting is a later' ? '421 busy' : '220 test'
    const result = await testMail(settings(await smtp(rules, greeting), more), 'ada@example.com')
    expect(result).toEqual({
      sent: false,
      problem: expect.stringContaining(problem),
      remedy: expect.stringContaining(remedy),
    })
  })

  test('nothing listens', async () => {
    const result = await testMail(settings(1), 'ada@example.com')
    expect(result).toMatchObject({
      problem: expect.stringContaining('cannot be reached'),
      remedy: expect.stringContaining('Nothing listens'),
    })
  })

  test('the name is none', async () => {
    const result = await testMail(settings(25, { host: 'mail.invalid' }), 'ada@example.com')
    expect(result).toMatchObject({ sent: false, problem: expect.stringContaining('name cannot be resolved') })
  })
})

test('TLS off never uses what is offered', async () => {
  const port = await smtp({ EHLO: '250-STARTTLS\r\n250 hi', MAIL: '250 ok', RCPT: '250 ok', DATA: '354 go' })
  // The message itself gets no answer but a cut connection: everything before it went through in the clear.
  expect(await testMail(settings(port, { tls: 'off' }), 'a@b.c')).toMatchObject({
    problem: expect.not.stringContaining('TLS'),
  })
})

describe('on the command line', () => {
  const run = (port: number, ...args: string[]) => authHere(args, { AUTH_SMTP_PORT: String(port) })

  test('mail test sends a mail without a database, or says what failed', async () => {
    const mailbox = await startMailbox()
    expect(await run(mailbox.port, 'mail', 'test', 'ada@example.com')).toMatchObject({ code: 0, stderr: '' })
    expect((await mailbox.waitFor('ada@example.com')).subject).toContain('Test mail')
    await mailbox.answer(550)
    const refused = await run(mailbox.port, 'mail', 'test', 'ada@example.com')
    expect(refused).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('refused the recipient (550)'),
    })
    await mailbox.close()
  })

  test('mail test names this service as the address it is reachable under does, and no machine', async () => {
    const greetings: string[] = []
    const port = await smtp({ EHLO: '421 bye' }, '220 test', (line) => greetings.push(line))
    await run(port, 'mail', 'test', 'ada@example.com')
    expect(greetings).toContain('EHLO auth.example')
    // Neither is a name in the sense of RFC 5321, section 4.1.1.1.
    for (const address of ['http://localhost:8081', 'http://192.0.2.7', 'http://[2001:db8::1]']) {
      greetings.length = 0
      const settings = { AUTH_SMTP_PORT: String(port), AUTH_API_EXTERNAL_URL: address }
      await authHere(['mail', 'test', 'ada@example.com'], settings)
      expect(greetings[0]).toMatch(/^EHLO /)
      expect(greetings[0]).not.toMatch(/localhost|192\.0\.2\.7|2001/)
    }
  })

  test('mail test without a mail server says which settings are missing', async () => {
    const off = { AUTH_EXTERNAL_EMAIL_ENABLED: 'false', AUTH_SMTP_HOST: '', AUTH_SMTP_ADMIN_EMAIL: '' }
    expect(await authHere(['mail', 'test', 'ada@example.com'], off)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'no mail server is configured: AUTH_SMTP_HOST and AUTH_SMTP_ADMIN_EMAIL must be set\n',
    })
  })

  test('mail preview prints a mail, one form of it, or the kinds there are', async () => {
    const whole = await run(1, 'mail', 'preview', 'recovery')
    expect(whole.stdout).toMatch(/^Subject: Reset your password\n\nReset your password\n[^<]+<!doctype html>/)
    expect(whole.stdout).toContain('&type=recovery&')
    const german = await run(1, 'mail', 'preview', 'magic-link', '--locale', 'de', '--text')
    expect(german.stdout).toMatch(/^Anmelden\n[^<]+$/)
    expect((await run(1, 'mail', 'preview', 'invite', '--html')).stdout).toMatch(/^<!doctype html>/)
    expect(await run(1, 'mail', 'preview', 'nonsense')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('recovery'),
    })
  })
})
