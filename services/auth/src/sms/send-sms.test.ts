import { createLogger } from '@services/common/logger'
import { PermanentFailure } from '@services/common/queue'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { type FarGateway, refusals, type SmsFarSide, startSmsGateways } from '../../test/far-sides/sms-gateways.ts'
import { readConfig } from '../config.ts'
import { createSmsSender } from './send-sms.ts'

const REQUIRED = {
  AUTH_SITE_URL: 'https://site.example',
  AUTH_API_EXTERNAL_URL: 'https://auth.example/',
  AUTH_DATABASE_URL: 'postgres://localhost/auth',
  AUTH_JWT_SECRET: 'a-secret-of-the-tests-with-32-bytes-or-more',
  AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
}
const ALL = ['textlocal', 'vonage', 'twilio', 'messagebird', 'http'] as const
const BROKEN = { status: 500, body: '' }

let farSide: SmsFarSide
beforeAll(async () => {
  farSide = await startSmsGateways()
})
afterEach(() => {
  farSide.requests.length = 0
  for (const gateway of ALL) farSide.behave(gateway)
})
afterAll(() => farSide.close())

/** A sender, and every line it logs. */
function open(...gateways: FarGateway[]) {
  const { config } = readConfig({ ...REQUIRED, ...farSide.settings(...gateways), AUTH_SMS_TIMEOUT: '5' })
  const lines: { level: string; facts: Record<string, unknown>; text: string }[] = []
  const log = createLogger({ name: 'test', level: 'info' })
  const record = (level: string) => (facts: unknown, text: unknown) =>
    void lines.push({ level, facts: facts as Record<string, unknown>, text: String(text) })
  vi.spyOn(log, 'child').mockReturnValue(
    Object.assign(log, { info: record('info'), warn: record('warn'), error: record('error') }) as never,
  )
  const sender = createSmsSender(config.sms, log)
  const send = (channel: 'sms' | 'whatsapp' = 'sms') =>
    sender.send({ id: 'message-1', to: '4915100000001', text: 'Your code is 123456', code: '123456', channel })
  return { sender, send, lines }
}

const asked = () => farSide.requests.map(({ gateway }) => gateway)

test('gateways are asked in the order of SMS_PROVIDER until one takes the message', async () => {
  for (const gateway of ['textlocal', 'vonage', 'twilio'] as const) farSide.behave(gateway, BROKEN)
  expect(await open(...ALL).send()).toEqual({
    gateway: 'messagebird',
    providerMessageId: 'e8077d803532c0b5937c639b60216938',
  })
  expect(asked()).toEqual(['textlocal', 'vonage', 'twilio', 'messagebird'])
})

test('a number that one gateway refuses is not tried at the next', async () => {
  farSide.behave('vonage', refusals.vonage.barredNumber)
  await expect(open('vonage', 'twilio').send()).rejects.toThrow(PermanentFailure)
  expect(asked()).toEqual(['vonage'])
})

test('when all have failed, one bad moment among them is worth a retry; refusals of us alone are not', async () => {
  const { send } = open('vonage', 'textlocal')
  farSide.behave('vonage', refusals.vonage.credentials)
  farSide.behave('textlocal', BROKEN)
  const mixed = await send().catch((error: Error) => error)
  expect(mixed).toBeInstanceOf(Error)
  expect(mixed).not.toBeInstanceOf(PermanentFailure)
  farSide.behave('textlocal', refusals.textlocal.noCredit)
  await expect(send()).rejects.toThrow(PermanentFailure)
})

test('a WhatsApp message goes to gateways that have the channel, and nowhere without one', async () => {
  const { sender, send } = open('vonage', 'twilio')
  expect(sender.supports('whatsapp')).toBe(true)
  expect(await send('whatsapp')).toMatchObject({ gateway: 'twilio' })
  expect(asked()).toEqual(['twilio'])
  expect(farSide.messages.at(-1)).toMatchObject({ to: '4915100000001', channel: 'whatsapp' })
  const without = open('vonage')
  expect(without.sender.supports('whatsapp')).toBe(false)
  await expect(without.send('whatsapp')).rejects.toThrow(PermanentFailure)
  expect(asked()).toEqual(['twilio'])
})

test('without any gateway a message fails for good', async () => {
  await expect(open().send()).rejects.toThrow(PermanentFailure)
})

test('each try is one log line that names the gateway and neither number nor code nor secret', async () => {
  farSide.behave('vonage', refusals.vonage.credentials)
  farSide.behave('textlocal', { status: 500, body: 'no route to 4915100000001: Your code is 123456' })
  const { send, lines } = open('vonage', 'textlocal', 'twilio')
  await send()
  expect(lines).toEqual([
    { level: 'error', facts: { gateway: 'vonage', reason: 'vonage: answered 200, code 4' }, text: expect.any(String) },
    { level: 'warn', facts: { gateway: 'textlocal', reason: 'textlocal: answered 500' }, text: expect.any(String) },
    {
      level: 'info',
      facts: { gateway: 'twilio', providerMessageId: 'SM00000000000000000000000000000001' },
      text: expect.any(String),
    },
  ])
  expect(JSON.stringify(lines)).not.toMatch(/4915100000001|123456|vonage-(key|secret)/)
})
