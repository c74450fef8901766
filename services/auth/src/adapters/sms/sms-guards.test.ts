import { describe, expect } from 'vitest'
import { test as base, startTestService, type TestService } from '../../../test/service.ts'
import { createSmsGuards, type SmsGuards } from '../../core/limits/sms-guards.ts'

type WithGuards = (
  settings: Record<string, string>,
  work: (one: SmsGuards, two: SmsGuards, service: TestService) => Promise<void>,
) => Promise<void>

/** Guards of one replica; two of one database stand for two. */
const test = base.extend<{ withGuards: WithGuards }>({
  withGuards: ({ service: shared }, use) =>
    use(async (settings, work) => {
      const service = await shared.onAnotherDay(settings)
      const open = () => createSmsGuards(service.deps, service.deps.config)
      await work(open(), open(), service)
      await service.close()
    }),
})

const allowed = (guards: SmsGuards, phone: string) =>
  guards.allow(phone).then(
    () => 'yes',
    (refusal: { code: string }) => refusal.code,
  )

async function inTurn(guards: SmsGuards[], phones: string[]) {
  const answers: string[] = []
  for (const [index, phone] of phones.entries()) {
    answers.push(await allowed(guards[index % guards.length] as SmsGuards, phone))
  }
  return answers
}

const OVER = 'over_sms_send_rate_limit'
const many = (count: number, phone: (index: number) => string) => Array.from({ length: count }, (_, i) => phone(i))

describe('replicas count together', () => {
  test('messages to one number: five an hour by default', async ({ withGuards }) => {
    await withGuards({}, async (one, two) => {
      expect(
        await inTurn(
          [one, two],
          many(7, () => '4915100000001'),
        ),
      ).toEqual([...many(5, () => 'yes'), OVER, OVER])
      expect(await allowed(two, '4915100000002')).toBe('yes')
    })
  })

  test('messages to one number: every listed rate holds', async ({ withGuards }) => {
    await withGuards({ AUTH_SMS_MAX_PER_NUMBER: '2/1h,3/24h' }, async (one, two, { clock }) => {
      expect(
        await inTurn(
          [one, two],
          many(3, () => '4915100000001'),
        ),
      ).toEqual(['yes', 'yes', OVER])
      clock.advance({ seconds: 3_601 })
      expect(
        await inTurn(
          [one, two],
          many(2, () => '4915100000001'),
        ),
      ).toEqual(['yes', OVER])
    })
  })

  test('messages to a block of ten thousand numbers, which is what is pumped', async ({ withGuards }) => {
    await withGuards({ AUTH_SMS_MAX_PER_PREFIX: '4' }, async (one, two) => {
      const block = many(6, (i) => `49151000${i}00${i}`)
      expect(await inTurn([one, two], block)).toEqual(['yes', 'yes', 'yes', 'yes', OVER, OVER])
      expect(await allowed(one, '491510010001')).toBe('yes')
    })
  })

  test.for<[string, Record<string, string>]>([
    ['an hour', { AUTH_RATE_LIMIT_SMS_SENT: '3' }],
    ['a day', { AUTH_SMS_DAILY_BUDGET: '3' }],
  ])('messages to all numbers in %s', async ([, settings], { withGuards }) => {
    await withGuards(settings, async (one, two) => {
      const phones = many(5, (i) => `4915${i}00000001`)
      expect(await inTurn([one, two], phones)).toEqual(['yes', 'yes', 'yes', OVER, OVER])
    })
  })

  test('a budget of nothing sends nothing', async ({ withGuards }) => {
    await withGuards({ AUTH_SMS_DAILY_BUDGET: '0' }, async (one) => {
      expect(await allowed(one, '4915100000001')).toBe(OVER)
    })
  })
})

test('parallel requests do not get past a cap', async ({ withGuards }) => {
  await withGuards({ AUTH_SMS_MAX_PER_NUMBER: '3' }, async (one, two) => {
    const answers = await Promise.all(many(20, String).map((_, i) => allowed(i % 2 ? one : two, '4915100000001')))
    expect(answers.filter((answer) => answer === 'yes')).toHaveLength(3)
  })
})

test('a refusal says when to come back', async ({ withGuards }) => {
  await withGuards({ AUTH_SMS_MAX_PER_NUMBER: '1/1h' }, async (one) => {
    await one.allow('4915100000001')
    const refusal = await one.allow('4915100000001').catch((error) => error)
    expect(refusal).toMatchObject({ status: 429, code: OVER })
    expect(refusal.retryAfterSeconds).toBeGreaterThan(3500)
    expect(refusal.retryAfterSeconds).toBeLessThanOrEqual(3600)
  })
})

test('a refused message uses up no other share', async ({ withGuards }) => {
  await withGuards({ AUTH_SMS_MAX_PER_NUMBER: '1', AUTH_RATE_LIMIT_SMS_SENT: '2' }, async (one, two) => {
    expect(
      await inTurn(
        [one, two],
        many(6, () => '4915100000001'),
      ),
    ).toEqual(['yes', ...many(5, () => OVER)])
    expect(await allowed(one, '4915200000001')).toBe('yes')
    expect(await allowed(two, '4915300000001')).toBe(OVER)
  })
  await withGuards(
    { AUTH_SMS_MAX_PER_NUMBER: '2/24h', AUTH_RATE_LIMIT_SMS_SENT: '1/1h' },
    async (one, two, { clock }) => {
      expect(
        await inTurn(
          [one, two],
          many(4, () => '4915100000001'),
        ),
      ).toEqual(['yes', OVER, OVER, OVER])
      clock.advance({ seconds: 3_601 })
      expect(await allowed(two, '4915100000001')).toBe('yes')
    },
  )
})

test('a country that gets no messages is refused before anything is counted', async ({ withGuards }) => {
  await withGuards({ AUTH_SMS_COUNTRIES: '+49', AUTH_RATE_LIMIT_SMS_SENT: '1' }, async (one) => {
    const refusal = await one.allow('18765550100').catch((error) => error)
    expect(refusal).toMatchObject({ status: 400, code: 'validation_failed' })
    expect(await allowed(one, '4915100000001')).toBe('yes')
  })
})

test('no number is stored with the counters', async () => {
  const { deps, close } = await startTestService()
  await createSmsGuards(deps, deps.config).allow('4915100000001')
  const rows = await deps.db.selectFrom('rate_limits').select('key').execute()
  expect(rows).toHaveLength(5)
  expect(JSON.stringify(rows)).not.toContain('491510')
  await close()
})
