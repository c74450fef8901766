import { afterAll, beforeAll, expect } from 'vitest'
import { expectEqualAnswers, expectEqualAnswersForNumbers, type Stranger, startStranger } from './enumeration-tests.ts'
import { test } from './service.ts'

let stranger: Stranger
beforeAll(async () => {
  stranger = await startStranger()
})
afterAll(() => stranger.close())

test.for([
  [['a sign-up', 'a sign-in with its password']],
  [['a sign-up', 'a sign-in with another password']],
  [['a link', 'a sign-up', 'a sign-in with its password']],
  [['a sign-up', 'a link', 'a sign-in with its password']],
  [['a sign-up', 'a recovery', 'a sign-in with its password']],
  [['a sign-up', 'a sign-in at a provider', 'a sign-in with its password']],
  [['a sign-in at a provider', 'a sign-up', 'a sign-in with its password']],
  [['a sign-in at a provider', 'a sign-up', 'a sign-in at a provider', 'a sign-in with its password']],
  [['a sign-up', "an admin's invitation", 'a sign-in with its password']],
] as const)('%j are answered alike, whatever account the address has', async ([order]) => {
  await expectEqualAnswers(stranger, order)
})

test.for([
  [['a sign-up', 'a sign-in with its password']],
  [['a code', 'a sign-up', 'a sign-in with its password']],
  [['a sign-up', 'a code', 'a sign-in with its password']],
  [['a sign-up', 'a guess at a code', 'a resend']],
] as const)('%j are answered alike, whatever account the number has', async ([order]) => {
  await expectEqualAnswersForNumbers(stranger, order)
})

test('seven sign-ins with the password of a sign-up are answered alike, and wait from the sixth on', async ({
  service,
}) => {
  const statuses: Record<string, number[]> = {}
  for (const who of ['known', 'unknown']) {
    const email = `seven-${who}@example.com`
    if (who === 'known') await service.signedIn(email)
    service.clock.advance({ seconds: 61 })
    await service.post('/signup', { email, password: 'a stranger chose this' })
    const signIn = async () =>
      (await service.post('/token?grant_type=password', { email, password: 'a stranger chose this' })).status
    statuses[who] = []
    for (let i = 0; i < 7; i++) statuses[who].push(await signIn())
  }
  expect(statuses.known).toEqual(statuses.unknown)
  expect(statuses.unknown).toEqual([400, 400, 400, 400, 400, 429, 429])
})

test('a pending account has no password that works before its proof, and only the password of the last sign-up is not confirmed', async ({
  service,
}) => {
  const email = 'pending-twice@example.com'
  const signIn = async (password: string) =>
    (await service.post('/token?grant_type=password', { email, password })).body.error_code
  await service.post('/signup', { email, password: 'the first horse' })
  expect(await signIn('the first horse')).toBe('email_not_confirmed')
  service.clock.advance({ seconds: 901 })
  expect((await service.post('/signup', { email, password: 'the second horse' })).status).toBe(200)
  expect(await signIn('the second horse')).toBe('email_not_confirmed')
  expect(await signIn('the first horse')).toBe('invalid_credentials')
})
