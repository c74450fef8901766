import type { QueueJob } from '@services/common/queue/run-job'
import { createLogger } from '@services/common/telemetry/logger'
import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { test as base, startTestService, type TestService } from '../../../test/service.ts'
import { addPausedReceiver, storedEvents } from '../../../test/upstreams/paused-receiver.ts'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { hashCode, hashLinkToken } from '../one-time-tokens/one-time-token.ts'
import { putOneTimeToken } from '../one-time-tokens/one-time-tokens.store.ts'
import { type Channel, deliverMessage } from './deliver-message.ts'
import { markDropped } from './messages.store.ts'
import { MESSAGE_QUEUES, type MessageJob, type NewSms, queueMessage } from './outbox.ts'
import { createSilentGroups } from './silent-groups.ts'

/** `idle`: a service whose worker runs elsewhere, so that a message waits for the test's own attempt. */
const test = base.extend<object & { idle: TestService }>({
  idle: perFile(() => startTestService({ AUTH_WORKERS_ENABLED: 'false' })),
})

const NOBODY = '11111111-1111-4111-8111-111111111111'

const sealedOf = async (service: TestService, id: unknown) =>
  (
    await service.deps.db
      .selectFrom('messages')
      .select('sealed')
      .where('id', '=', id as string)
      .executeTakeFirst()
  )?.sealed

const SMS = {
  channel: 'sms',
  kind: 'confirmation',
  to: '4915112345678',
  variables: { code: '123456', channel: 'sms', text: 'Your code is 123456' },
  lifetimeSeconds: null,
} as const

describe('one attempt', () => {
  const job = (messageId: string, retryCount = 0) =>
    ({ id: 'job', data: { messageId }, retryCount, signal: new AbortController().signal }) as QueueJob<MessageJob>
  const queue = (service: TestService, message: Partial<NewSms> = {}) =>
    service.deps.db
      .transaction()
      .execute((trx) => queueMessage(service.deps, trx, { ...SMS, userId: null, ...message }))
  const log = createLogger({ name: 'test', level: 'fatal' })
  const silentGroups = createSilentGroups()
  const attempt = (service: TestService, sms: Channel | undefined, id: string, retryCount = 0) =>
    deliverMessage({ ...service.deps, log, channels: sms ? { sms } : {}, silentGroups }, job(id, retryCount))
  const rowOf = async (service: TestService, id: string) =>
    (await service.get('/admin/messages?channel=sms&per_page=200', service.admin)).body.messages.find(
      (message: { id: string }) => message.id === id,
    )

  test('hands the content to the channel and keeps the id of the upstream', async ({ idle: service }) => {
    const id = await queue(service)
    const seen: unknown[] = []
    await attempt(
      service,
      async (message) => {
        seen.push(message)
        return { provider: 'twilio', providerMessageId: 'SM1' }
      },
      id,
    )
    expect(seen).toMatchObject([{ id, kind: 'confirmation', to: SMS.to, variables: SMS.variables, userId: null }])
    expect(await rowOf(service, id)).toMatchObject({ state: 'sent', provider: 'twilio', provider_message_id: 'SM1' })
  })

  test('after the last retry of the queue fails the message, the one before leaves it queued', async ({
    idle: service,
  }) => {
    const id = await queue(service)
    const fails: Channel = async () => {
      throw new TemporaryFailure('the gateway answered 500')
    }
    const { retryLimit } = MESSAGE_QUEUES.sms
    await expect(attempt(service, fails, id, retryLimit - 1)).rejects.toThrow('500')
    expect(await rowOf(service, id)).toMatchObject({
      state: 'queued',
      attempts: 1,
      last_error: 'the gateway answered 500',
    })
    await expect(attempt(service, fails, id, retryLimit)).rejects.toThrow('500')
    expect(await rowOf(service, id)).toMatchObject({ state: 'failed', attempts: 2 })
    expect(await sealedOf(service, id)).not.toBeNull()
  })

  test.for([0, MESSAGE_QUEUES.sms.retryLimit])(
    'notes words that the database would refuse, at attempt %i',
    async (retryCount, { idle: service }) => {
      const receiver = await addPausedReceiver(service, ['message.failed'])
      const id = await queue(service)
      const error = new TemporaryFailure(`answered\0 ${'x'.repeat(290)}😀`)
      await expect(attempt(service, () => Promise.reject(error), id, retryCount)).rejects.toThrow(error)
      const words = `answered ${'x'.repeat(290)}\ufffd`
      const isFinal = retryCount > 0
      expect(await rowOf(service, id)).toMatchObject({ state: isFinal ? 'failed' : 'queued', last_error: words })
      const events = (await storedEvents(service)).map(({ data }) => data.message)
      expect(events).toEqual(isFinal ? [{ id, channel: 'sms', kind: 'confirmation', error: words }] : [])
      await service.delete(`/admin/webhooks/${receiver}`, service.admin)
    },
  )

  test('that fails for the last time reports no message that a newer one replaced meanwhile', async ({
    idle: service,
  }) => {
    const receiver = await addPausedReceiver(service, ['message.failed'])
    const id = await queue(service)
    const { db } = service.deps
    const fails: Channel = async () => {
      await markDropped(db, id, 'replaced', service.clock.now())
      throw new TemporaryFailure('the gateway answered 500')
    }
    await expect(attempt(service, fails, id, MESSAGE_QUEUES.sms.retryLimit)).rejects.toThrow('500')
    expect(await rowOf(service, id)).toMatchObject({ state: 'dropped', last_error: 'replaced' })
    expect(await storedEvents(service)).toEqual([])
    await service.delete(`/admin/webhooks/${receiver}`, service.admin)
  })

  test('at a message that is no longer queued does nothing', async ({ idle: service }) => {
    const id = await queue(service)
    let sent = 0
    const sends: Channel = async () => {
      sent++
      return { provider: 'x', providerMessageId: null }
    }
    await attempt(service, sends, id)
    await attempt(service, sends, id)
    await attempt(service, sends, NOBODY)
    expect(sent).toBe(1)
  })

  test('shows nothing of an unexpected error', async ({ idle: service }) => {
    const id = await queue(service)
    await expect(attempt(service, () => Promise.reject(new Error(`could not reach ${SMS.to}`)), id)).rejects.toThrow()
    expect((await rowOf(service, id))?.last_error).toBe('unexpected error, see the log')
  })

  test('without a channel, or at a message sealed for another row, leaves it to other workers until the last retry', async ({
    idle: service,
  }) => {
    const [first, second] = [await queue(service), await queue(service)]
    const { db } = service.deps
    const sealedForFirst = db.selectFrom('messages').select('sealed').where('id', '=', first)
    await db.updateTable('messages').set({ sealed: sealedForFirst }).where('id', '=', second).execute()
    for (const [id, words] of [
      [first, 'nothing delivers sms messages here'],
      [second, 'it is changed, or moved from another row'],
    ] as const) {
      await expect(attempt(service, undefined, id)).rejects.toThrow(TemporaryFailure)
      expect(await rowOf(service, id)).toMatchObject({ state: 'queued', last_error: words })
      await expect(attempt(service, undefined, id, MESSAGE_QUEUES.sms.retryLimit)).rejects.toThrow(words)
      expect(await rowOf(service, id)).toMatchObject({ state: 'failed', last_error: words })
    }
  })

  test('restarts the lifetime of a code without a link, and drops the message when the code was replaced', async ({
    idle: service,
  }) => {
    const made = await service.post('/admin/users', { email: 'one-try@example.com' }, service.admin)
    const userId = made.body.id as string
    const { codeKey, db } = service.deps
    const codeHash = hashCode(codeKey, 'reauthentication', 'a', '123456')
    const put = (hash: Buffer) =>
      db.transaction().execute((trx) =>
        putOneTimeToken(trx, {
          userId,
          purpose: 'reauthentication',
          relatesTo: 'a',
          tokenHash: null,
          pkce: undefined,
          isClaim: false,
          isPretended: false,
          keepsCode: false,
          codeSeed: null,
          usedUpCodes: 0,
          isLong: false,
          codeHash: hash,
          expiresAt: service.clock.now(),
          now: service.clock.now(),
        }),
      )
    const sends: Channel = async () => ({ provider: 'x', providerMessageId: null })
    await put(codeHash)
    const id = await queue(service, { userId, codeHash, lifetimeSeconds: 600 })
    await attempt(service, sends, id)
    const token = await db
      .selectFrom('one_time_tokens')
      .select('code_expires_at')
      .where('user_id', '=', userId)
      .where('purpose', '=', 'reauthentication')
      .executeTakeFirst()
    expect(token?.code_expires_at?.getTime()).toBe(service.clock.now().getTime() + 600_000)
    const late = await queue(service, { userId, codeHash, lifetimeSeconds: 600 })
    await put(hashLinkToken('another'))
    await attempt(service, sends, late)
    expect(await rowOf(service, late)).toMatchObject({ state: 'dropped' })
  })
})
