// Retries of the queue, which take seconds.
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { startWorker } from '../../worker.ts'

/** The only message of a new user. */
const messageOf = async (service: TestService, userId: string) =>
  (await service.get(`/admin/messages?user_id=${userId}`, service.admin)).body.messages[0]

/** The same, once it was sent. */
async function sentTo(service: TestService, userId: string) {
  await expect.poll(async () => (await messageOf(service, userId)).state).toBe('sent')
  return messageOf(service, userId)
}

async function signUp(service: TestService, email: string): Promise<string> {
  const { status, body } = await service.post('/signup', { email, password: 'correct horse' })
  expect(status).toBe(200)
  return body.id
}

test('a message deferred at the greeting, at the recipient or after the message is queued with its failure, then sent', async () => {
  const laterAt = async (code: number, at: 'connection' | 'recipient' | 'message') => {
    const service = await startTestService()
    await service.mailbox.answer(code, at)
    const userId = await signUp(service, 'later@example.com')
    await expect
      .poll(() => messageOf(service, userId))
      .toMatchObject({ state: 'queued', last_error: expect.stringContaining(String(code)) })
    await service.mailbox.accept()
    const sent = await sentTo(service, userId)
    expect(sent.attempts).toBeGreaterThan(1)
    expect(service.mailbox.messages({ to: 'later@example.com' })).toHaveLength(1)
    await service.close()
  }
  // Parallel, as each waits for its retry.
  await Promise.all([laterAt(421, 'connection'), laterAt(451, 'recipient'), laterAt(452, 'message')])
})

test('a server that cuts the connection in the middle of a mail gets the mail again', async () => {
  let isCutting = true
  const heard: string[] = []
  const server = await startSmtp((line, say, cut) => {
    heard.push(line)
    if (/^EHLO/.test(line)) return say('250 hello')
    if (/^DATA/.test(line)) return isCutting ? cut() : say('354 go on')
    if (/^(MAIL|RCPT)/.test(line) || line === '.') return say('250 ok')
  })
  const service = await startTestService({ AUTH_SMTP_PORT: String(portOf(server)) })
  const userId = await signUp(service, 'cut@example.com')
  await expect.poll(async () => (await messageOf(service, userId)).last_error).toMatch(/^mail server: /)
  isCutting = false
  await sentTo(service, userId)
  expect(heard.filter((line) => line.startsWith('DATA')).length).toBeGreaterThan(1)
  await service.close()
  server.close()
})

test('a domain has one slot until it answers, and its messages are not attempted meanwhile', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const { mailbox } = service
  const stop = await startWorker(service.deps, { messages: 8, mailAnswerWithinMs: 1_000 })
  await mailbox.hang('slow.example')
  for (let i = 0; i < 12; i++) await signUp(service, `u${i}@slow.example`)
  const messages = async (query = '') =>
    (await service.get(`/admin/messages?per_page=100${query}`, service.admin)).body.messages as Message[]
  const notAttempted = async () =>
    (await messages()).filter(({ last_error }) => /^not attempted/.test(last_error ?? ''))
  await expect.poll(async () => (await notAttempted()).length).toBeGreaterThan(0)
  // Each attempt is alone, however many are due.
  const hangingAtOnce = new Set<number>()
  const attemptsOf = async () => (await messages()).reduce((sum, { attempts }) => sum + attempts, 0)
  const before = await attemptsOf()
  await expect
    .poll(async () => {
      hangingAtOnce.add(mailbox.hanging())
      return attemptsOf()
    })
    .toBeGreaterThan(before + 2)
  expect([...hangingAtOnce].filter((count) => count > 1)).toEqual([])
  await signUp(service, 'other@example.com')
  await mailbox.waitFor('other@example.com')
  await mailbox.accept()
  await expect.poll(async () => (await messages('&state=sent')).length).toBeGreaterThan(2)
  await stop()
  await service.close()
})

interface Message {
  attempts: number
  last_error: string | null
}

/** A minimal SMTP server with scripted answers. */
async function startSmtp(
  answer: (line: string, say: (text: string) => void, cut: () => void) => void,
): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    let rest = ''
    socket.write('220 test\r\n')
    socket.on('data', (chunk) => {
      const lines = (rest + chunk).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines)
        answer(
          line,
          (text) => socket.write(`${text}\r\n`),
          () => socket.destroy(),
        )
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

const portOf = (server: Server) => (server.address() as { port: number }).port
