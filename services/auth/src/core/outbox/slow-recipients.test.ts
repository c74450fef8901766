// Messages to recipients that hang, on two replicas that share the database.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { startWorker } from '../../worker.ts'
import { recipientGroup } from './recipient-group.ts'

/** Limit longer than any test: a mail that arrives meanwhile did not wait for the end of an attempt. */
const NEVER_MS = 600_000

const addressesAt = (domain: string, count: number) => Array.from({ length: count }, (_, i) => `u${i}@${domain}`)

async function startReplicas(settings: Record<string, string> = {}, count = 2) {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false', ...settings })
  const sharing = { AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_SMTP_PORT: String(service.mailbox.port) }
  const others = await Promise.all(
    Array.from({ length: count - 1 }, () =>
      startTestService({ AUTH_WORKERS_ENABLED: 'false', ...settings, ...sharing }),
    ),
  )
  const stops = await Promise.all(
    [service, ...others].map(({ deps }) =>
      startWorker(deps, { messages: 4, requests: 2, mailAnswerWithinMs: NEVER_MS }),
    ),
  )
  return {
    service,
    async close() {
      await service.mailbox.accept()
      await Promise.all(stops.map((stop) => stop()))
      await Promise.all(others.map((other) => other.close()))
      await service.close()
    },
  }
}

const invite = async (service: TestService, email: string) =>
  expect((await service.post('/invite', { email }, service.admin)).status).toBe(200)

test('mails to other domains leave while one domain never answers, from each of two replicas', async () => {
  const { service, close } = await startReplicas()
  await service.mailbox.hang('slow.example')
  for (const email of addressesAt('slow.example', 12)) await invite(service, email)
  // One slot of each replica, as the domain has never been answered.
  await expect.poll(service.mailbox.hanging).toBe(2)
  for (const email of addressesAt('fast.example', 6)) {
    await invite(service, email)
    await service.mailbox.waitFor(email)
  }
  expect(service.mailbox.hanging()).toBe(2)
  await close()
})

test('mails to a new domain leave while two hang for the first time at once, from one replica with four slots', async () => {
  const { service, close } = await startReplicas({}, 1)
  await service.mailbox.hang('slow.example')
  for (const domain of ['one-slow.example', 'two-slow.example']) {
    for (const email of addressesAt(domain, 4)) await invite(service, email)
  }
  await expect.poll(service.mailbox.hanging).toBe(2)
  for (const email of addressesAt('fast.example', 6)) {
    await invite(service, email)
    await service.mailbox.waitFor(email)
  }
  expect(service.mailbox.hanging()).toBe(2)
  await close()
})

test('mails to a domain that was answered leave while many others hang for the first time at once', async () => {
  const { service, close } = await startReplicas({}, 1)
  const mailTo = async (email: string) => {
    await invite(service, email)
    await service.mailbox.waitFor(email)
  }
  await mailTo('first@fast.example')
  await service.settled()
  await service.mailbox.hang('slow.example')
  for (let i = 0; i < 6; i++) await invite(service, `u@${i}-slow.example`)
  // Three quarters of the slots.
  await expect.poll(service.mailbox.hanging).toBe(3)
  for (const email of addressesAt('fast.example', 6)) await mailTo(email)
  expect(service.mailbox.hanging()).toBe(3)
  await close()
})

test('a domain that was answered and then hangs has half of the slots', async () => {
  const { service, close } = await startReplicas({}, 1)
  await invite(service, 'first@slow.example')
  await service.mailbox.waitFor('first@slow.example')
  await service.settled()
  await service.mailbox.hang('slow.example')
  for (const email of addressesAt('slow.example', 4)) await invite(service, email)
  await expect.poll(service.mailbox.hanging).toBe(2)
  await invite(service, 'other@fast.example')
  await service.mailbox.waitFor('other@fast.example')
  expect(service.mailbox.hanging()).toBe(2)
  await close()
})

test('SMS to other blocks of numbers leave while a gateway never answers for one', async () => {
  const held: ServerResponse[] = []
  const sent: string[] = []
  const gateway = createFarServer((request, response) => {
    const to = new URL(request.url ?? '', 'http://gateway').searchParams.get('to') ?? ''
    if (to.startsWith('49151111')) held.push(response)
    else {
      sent.push(to)
      response.end('{}')
    }
  }).listen(0, '127.0.0.1')
  await once(gateway, 'listening')
  const { port } = gateway.address() as AddressInfo
  const { service, close } = await startReplicas({
    AUTH_EXTERNAL_PHONE_ENABLED: 'true',
    AUTH_SMS_PROVIDER: 'http',
    AUTH_SMS_HTTP_URL: `http://127.0.0.1:${port}/?to={{ .To }}&text={{ .Text }}`,
    AUTH_SMS_HTTP_METHOD: 'get',
    AUTH_SMS_TIMEOUT: '10m',
  })
  const ask = async (phone: string) => expect((await service.post('/otp', { phone })).status).toBe(200)
  for (let i = 0; i < 12; i++) await ask(`491511110${String(i).padStart(3, '0')}`)
  await expect.poll(() => held.length).toBe(2)
  for (const phone of ['4917000000001', '4917100000002', '4917200000003']) {
    await ask(phone)
    await expect.poll(() => sent).toContain(phone)
  }
  expect(held).toHaveLength(2)
  for (const response of held) response.end('{}')
  await close()
  gateway.closeAllConnections()
  gateway.close()
})

test.each([
  ['a@shop.example', 'b@mail.shop.example', true],
  ['a@shop.example', 'a@other.example', false],
  ['a@one.co.uk', 'a@two.co.uk', false],
  ['a@one.co.uk', 'a@mx.one.co.uk', true],
  ['a@localhost', 'b@localhost', true],
])('mails to %s and to %s share slots: %s', async (one, other, isShared) => {
  const { deps, close } = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const groupOf = (to: string) => recipientGroup(deps.outboxKey, 'mail', to)
  expect(groupOf(one) === groupOf(other)).toBe(isShared)
  expect(groupOf(one)).not.toContain('shop')
  await close()
})
