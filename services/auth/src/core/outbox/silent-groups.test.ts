// A group that fell silent, by the attempts of one worker whose channel is the test's own.
import { PermanentFailure, type QueueJob } from '@services/common/queue/run-job'
import { createLogger } from '@services/common/telemetry/logger'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { toFailure } from '../../adapters/mail/smtp-failure.ts'
import { type Channel, deliverMessage } from './deliver-message.ts'
import { type MessageJob, queueMessage } from './outbox.ts'
import { createSilentGroups } from './silent-groups.ts'

let service: TestService
let userId: string
beforeAll(async () => {
  service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  userId = (await service.post('/admin/users', { email: 'silent@example.com' }, service.admin)).body.id
})
afterAll(() => service.close())

const log = createLogger({ name: 'test', level: 'fatal' })
const sends: Channel = async () => ({ provider: 'x', providerMessageId: null })
const fails =
  (failure: Error): Channel =>
  async () => {
    throw failure
  }

type Message = { isPretended?: true; isReplaced?: true; isUnreadable?: true }

/** A worker whose group `slow` has just timed out; `attempt` resolves to whether the channel was asked. */
async function workerOfSilentGroup() {
  const silentGroups = createSilentGroups()
  const attempt = async (channel: Channel | undefined, retryCount: number, message: Message = {}) => {
    const variables = { code: '123456', channel: 'sms', text: 'Your code is 123456' } as const
    const sms = { channel: 'sms', kind: 'confirmation', to: '4915112345678', variables } as const
    const { db } = service.deps
    const replaced = { userId, lifetimeSeconds: 600, codeHash: Buffer.from('replaced') }
    const lifetime = { ...(message.isPretended && { lifetimeSeconds: 0 }), ...(message.isReplaced && replaced) }
    const row = { ...sms, userId: null, lifetimeSeconds: null, ...lifetime }
    const messageId = await db.transaction().execute((trx) => queueMessage(service.deps, trx, row))
    if (message.isUnreadable)
      await db.updateTable('messages').set({ sealed: 'AAAA' }).where('id', '=', messageId).execute()
    const job = { id: 'job', data: { messageId }, retryCount, group: 'slow', signal: new AbortController().signal }
    let isAsked = false
    const watched: Channel | undefined =
      channel &&
      ((outgoing) => {
        isAsked = true
        return channel(outgoing)
      })
    const deps = { ...service.deps, log, channels: watched ? { sms: watched } : {}, silentGroups }
    await deliverMessage(deps, job as QueueJob<MessageJob>).catch(() => {})
    return isAsked
  }
  expect(await attempt(fails(new TemporaryFailure('no answer', { upstream: 'silent' })), 0)).toBe(true)
  expect(await attempt(sends, 0)).toBe(false)
  return { attempt, isSilent: async () => !(await attempt(sends, 0)) }
}

const smtpFailure = (error: object) => toFailure(Object.assign(new Error('x'), error))

test.each<[string, Channel | undefined, Message]>([
  ['a pretended message', sends, { isPretended: true }],
  ['a dropped message', sends, { isReplaced: true }],
  ['a message sealed under another secret', sends, { isUnreadable: true }],
  ['a worker without the channel', undefined, {}],
  ['a worker without the server', fails(new TemporaryFailure('this worker has no mail server')), {}],
  ['an unexpected error', fails(new Error('database lost')), {}],
  ['a server that is down', fails(smtpFailure({ command: 'CONN', code: 'ESOCKET', syscall: 'connect' })), {}],
  ['a server that takes no mail now', fails(smtpFailure({ command: 'CONN', responseCode: 421 })), {}],
])('%s is no answer of a silent group', async (_event, channel, message) => {
  const { attempt, isSilent } = await workerOfSilentGroup()
  await attempt(channel, 1, message)
  expect(await isSilent()).toBe(true)
})

test.each<[string, Channel]>([
  ['a message that is accepted', sends],
  ['a message that is refused', fails(new PermanentFailure('refused'))],
  ['a recipient who is deferred', fails(smtpFailure({ command: 'RCPT TO', responseCode: 451 }))],
  ['a mail that is deferred', fails(smtpFailure({ command: 'DATA', responseCode: 451 }))],
])('%s ends the silence of its group', async (_event, channel) => {
  const { attempt, isSilent } = await workerOfSilentGroup()
  await attempt(channel, 1)
  expect(await isSilent()).toBe(false)
})

const FIRST = { group: 'new', retryCount: 0 }

/** A group of which the first message is under way until `answer`. */
function newGroup() {
  const groups = createSilentGroups()
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = groups.withSlot(FIRST, () => groups.observe(FIRST.group, () => promise))
  return { groups, first, answer: () => resolve() }
}

test('messages of a group whose first is under way wait for its answer, then go', async () => {
  const { groups, first, answer } = newGroup()
  let made = 0
  const attempt = async () => void made++
  const others = [groups.withSlot(FIRST, attempt), groups.withSlot(FIRST, attempt)]
  await groups.withSlot({ ...FIRST, group: 'another' }, async () => expect(made).toBe(0))
  answer()
  await Promise.all([first, ...others])
  expect(made).toBe(2)
})

test('messages of a group whose first gets no answer soon go back to the queue, until it comes', async () => {
  const { groups, first, answer } = newGroup()
  let made = 0
  const attempt = async () => void made++
  for (const retryCount of [0, 0, 1]) {
    await expect(groups.withSlot({ ...FIRST, retryCount }, attempt)).rejects.toThrow('not attempted')
  }
  answer()
  await first
  await groups.withSlot(FIRST, attempt)
  expect(made).toBe(1)
})

test('new groups hold three quarters of the slots at most; others wait for an end among them, soon or in the queue', async () => {
  const groups = createSilentGroups(4)
  const sent: string[] = []
  const sendTo = (group: string, answer: Promise<void> = Promise.resolve()) =>
    groups.withSlot({ group, retryCount: 0 }, () =>
      groups.observe(group, () => answer).then(() => void sent.push(group)),
    )
  await sendTo('known')
  const { promise, resolve } = Promise.withResolvers<void>()
  const hanging = ['a', 'b', 'c'].map((group) => sendTo(group, promise))
  await expect(sendTo('d')).rejects.toThrow('not attempted')
  // Those after it wait no more, until one ends.
  let isRefused = false
  void sendTo('e').catch(() => (isRefused = true))
  await sendTo('known')
  await new Promise(setImmediate)
  expect([isRefused, sent]).toEqual([true, ['known', 'known']])
  resolve()
  await Promise.all(hanging)
  await sendTo('d')
  const next = Promise.withResolvers<void>()
  const others = ['f', 'g', 'h'].map((group) => sendTo(group, next.promise))
  const waiting = ['i', 'j', 'k', 'l'].map((group) => sendTo(group))
  next.resolve()
  await Promise.all([...others, ...waiting])
  expect(sent).toHaveLength(13)
})
