import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PermanentFailure } from '@services/common/queue/run-job'
import { createLogger } from '@services/common/telemetry/logger'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { smsConfig } from '../../../test/sms-config.ts'
import { type FarGateway, refusals, type SmsUpstream, startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'
import { TemporaryFailure } from '../delivery-failures.ts'
import { createSmsSender } from './send-sms.ts'

const ALL = ['textlocal', 'vonage', 'twilio', 'messagebird', 'http'] as const
const BROKEN = { status: 500, body: '' }

let upstream: SmsUpstream
beforeAll(async () => {
  upstream = await startSmsGateways()
  folder = mkdtempSync(join(tmpdir(), 'send-sms-'))
})
afterEach(() => {
  upstream.requests.length = 0
  for (const gateway of ALL) upstream.behave(gateway)
})
afterAll(async () => {
  await upstream.close()
  rmSync(folder, { recursive: true })
})

let folder: string
let opened = 0

function open(...gateways: FarGateway[]) {
  const config = smsConfig({ ...upstream.settings(...gateways) })
  const file = join(folder, `${opened++}.log`)
  const sender = createSmsSender(config, createLogger({ name: 'test', level: 'info', file }))
  const send = (channel: 'sms' | 'whatsapp' = 'sms') =>
    sender.send({ id: 'message-1', to: '4915100000001', text: 'Your code is 123456', code: '123456', channel })
  return { sender, send, logged: () => readFileSync(file, 'utf8').split('\n').filter(Boolean) }
}

const asked = () => upstream.requests.map(({ gateway }) => gateway)

test('gateways are asked in the order of SMS_PROVIDER until one takes the message', async () => {
  for (const gateway of ['textlocal', 'vonage', 'twilio'] as const) upstream.behave(gateway, BROKEN)
  expect(await open(...ALL).send()).toEqual({
    gateway: 'messagebird',
    providerMessageId: 'e8077d803532c0b5937c639b60216938',
  })
  expect(asked()).toEqual(['textlocal', 'vonage', 'twilio', 'messagebird'])
})

test('a number that one gateway refuses is not tried at the next', async () => {
  upstream.behave('vonage', refusals.vonage.barredNumber)
  await expect(open('vonage', 'twilio').send()).rejects.toThrow(PermanentFailure)
  expect(asked()).toEqual(['vonage'])
})

test('when all have failed, one temporary failure among them is worth a retry; refusals of our account are not', async () => {
  const { send } = open('vonage', 'textlocal')
  upstream.behave('vonage', refusals.vonage.credentials)
  upstream.behave('textlocal', BROKEN)
  const mixed = await send().catch((error: Error) => error)
  expect(mixed).toBeInstanceOf(TemporaryFailure)
  expect(mixed).toMatchObject({ upstream: 'answered' })
  upstream.behave('textlocal', refusals.textlocal.noCredit)
  await expect(send()).rejects.toThrow(PermanentFailure)
})

test('a WhatsApp message goes to gateways that have the channel, and nowhere without one', async () => {
  const { sender, send } = open('vonage', 'twilio')
  expect(sender.supports('whatsapp')).toBe(true)
  expect(await send('whatsapp')).toMatchObject({ gateway: 'twilio' })
  expect(asked()).toEqual(['twilio'])
  expect(upstream.messages.at(-1)).toMatchObject({ to: '4915100000001', channel: 'whatsapp' })
  const without = open('vonage')
  expect(without.sender.supports('whatsapp')).toBe(false)
  await expect(without.send('whatsapp')).rejects.toThrow(TemporaryFailure)
  expect(asked()).toEqual(['twilio'])
})

test('without any gateway a message is left to a worker that has one', async () => {
  await expect(open().send()).rejects.toThrow(TemporaryFailure)
})

test('a gateway that does not answer in time is asked last for a minute, then first again', async () => {
  let ms = 0
  const config = smsConfig({ ...upstream.settings('vonage', 'textlocal'), AUTH_SMS_TIMEOUT: '2s' })
  const sender = createSmsSender(config, createLogger({ name: 'test', level: 'fatal' }), () => ms)
  const send = () =>
    sender.send({ id: 'm', to: '4915100000001', text: 'Your code is 123456', code: '123456', channel: 'sms' })
  upstream.behave('vonage', 'hang')
  for (let n = 0; n < 3; n++) expect(await send()).toMatchObject({ gateway: 'textlocal' })
  expect(asked()).toEqual(['vonage', 'textlocal', 'textlocal', 'textlocal'])
  upstream.behave('vonage')
  upstream.behave('textlocal', BROKEN)
  expect(await send()).toMatchObject({ gateway: 'vonage' })
  upstream.behave('textlocal')
  expect(await send()).toMatchObject({ gateway: 'vonage' })
  upstream.behave('vonage', 'hang')
  await send()
  upstream.behave('vonage')
  expect(await send()).toMatchObject({ gateway: 'textlocal' })
  ms += 60_001
  expect(await send()).toMatchObject({ gateway: 'vonage' })
})

test('each try is one log line that names the gateway and neither number nor code nor secret', async () => {
  upstream.behave('vonage', refusals.vonage.credentials)
  upstream.behave('textlocal', { status: 500, body: 'no route to 4915100000001: Your code is 123456' })
  const { send, logged } = open('vonage', 'textlocal', 'twilio')
  await send()
  await expect.poll(() => logged().length).toBe(3)
  const lines = logged()
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'error', messageId: 'message-1', gateway: 'vonage', reason: 'vonage: answered 200, code 4' },
    { level: 'warn', messageId: 'message-1', gateway: 'textlocal', reason: 'textlocal: answered 500' },
    { level: 'info', messageId: 'message-1', gateway: 'twilio', providerMessageId: expect.stringMatching(/^SM0+1$/) },
  ])
  expect(lines.join()).not.toMatch(/4915100000001|123456|vonage-(key|secret)/)
})
