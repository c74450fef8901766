import { expect } from 'vitest'
import { test } from '../../../test/service.ts'
import { FURTHER_PROVIDERS, SPECIFIED_PROVIDERS } from '../../config/external-providers.ts'

test('GET /settings always names the providers of the specification, in its order', async ({ service }) => {
  const { external } = (await service.get('/settings')).body
  expect(Object.keys(external)).toEqual([...SPECIFIED_PROVIDERS])
  expect(Object.keys(external)).toHaveLength(18)
})

test.for(FURTHER_PROVIDERS)('GET /settings names %s where it can be used, and only then', async (name, { service }) => {
  const prefix = `AUTH_EXTERNAL_${name.toUpperCase()}_`
  const whole = {
    [`${prefix}ENABLED`]: 'true',
    [`${prefix}CLIENT_ID`]: 'x',
    [`${prefix}SECRET`]: 'x',
    [`${prefix}REDIRECT_URI`]: 'https://auth.example/callback',
  }
  const beyond = async (changed: Record<string, string> = {}) => {
    const own = await service.with({ ...whole, ...changed })
    const { external } = (await own.get('/settings')).body
    await own.close()
    expect(Object.keys(external)).toEqual(expect.arrayContaining([...SPECIFIED_PROVIDERS]))
    return Object.entries(external).filter(([known]) => !SPECIFIED_PROVIDERS.some((other) => other === known))
  }
  expect(await beyond()).toEqual([[name, true]])
  expect(await beyond({ [`${prefix}ENABLED`]: 'false' })).toEqual([])
  expect(await beyond({ [`${prefix}SECRET`]: '' })).toEqual([])
})
