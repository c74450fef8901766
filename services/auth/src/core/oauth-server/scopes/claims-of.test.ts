import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { findUserById } from '../../users/users.store.ts'
import { STANDARD_SCOPES } from '../oauth-scopes.ts'
import { claimsOf } from './claims-of.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

const metadata = {
  app_metadata: { plan: { tier: 'gold', seats: 3 } },
  user_metadata: { full_name: 'Ada Byron', name: 'Ada', avatar_url: 'https://a.example/1', username: 'ada', team: 7 },
}

async function stored(change: object = {}) {
  const user = { email: 'ada@a.example', phone: '4917012', email_confirm: true, phone_confirm: true, ...metadata }
  const { body } = await service.post('/admin/users', { ...user, ...change }, service.admin)
  const found = (await findUserById(service.deps.db, body.id)) ?? expect.fail('no user')
  await service.delete(`/admin/users/${body.id}`, service.admin)
  return found
}

test('each scope opens its own claims and no other', async () => {
  const user = await stored()
  const bySet = Object.fromEntries(STANDARD_SCOPES.map((scope) => [scope, claimsOf(user, [scope], [])]))
  const updated_at = Math.floor(user.updated_at.getTime() / 1000)
  expect(bySet).toEqual({
    ...Object.fromEntries(STANDARD_SCOPES.map((scope) => [scope, {}])),
    email: { email: 'ada@a.example', email_verified: true },
    phone: { phone_number: '+4917012', phone_number_verified: true },
    profile: { name: 'Ada Byron', picture: 'https://a.example/1', preferred_username: 'ada', updated_at },
    'account:read': { user_metadata: expect.objectContaining({ team: 7 }) },
  })
})

test('an address that its owner has not proven is no claim', async () => {
  const user = await stored({ email_confirm: false, phone_confirm: false })
  expect(claimsOf(user, ['email', 'phone', 'account:read'], [])).toEqual({
    user_metadata: expect.not.objectContaining({ email: 'ada@a.example' }),
  })
})

test('an address that a setting confirmed is a claim, and not verified', async () => {
  const user = { ...(await stored()), email_assumed: true, phone_assumed: true }
  expect(claimsOf(user, ['email', 'phone'], [])).toEqual({
    ...{ email: 'ada@a.example', email_verified: false, phone_number: '+4917012', phone_number_verified: false },
  })
})

test('a user without a name is named by the address, where the scopes open that too', async () => {
  const user = await stored({ user_metadata: { name: { first: 'Ada' } } })
  expect(claimsOf(user, ['profile'], [])).not.toHaveProperty('name')
  expect(claimsOf(user, ['profile', 'email'], [])).toMatchObject({ name: 'ada@a.example' })
})

const plan = { name: 'plan', claims: ['app_metadata.plan.tier', 'app_metadata.none', 'user_metadata.team'] }

test("an operator's scope opens the members that it names, in their place", async () => {
  const user = await stored()
  expect(claimsOf(user, ['plan'], [plan])).toEqual({
    app_metadata: { plan: { tier: 'gold' } },
    user_metadata: { team: 7 },
  })
  expect(claimsOf(user, ['email'], [plan])).not.toHaveProperty('app_metadata')
  expect(claimsOf(user, ['account:read', 'plan'], [plan])).toMatchObject({
    app_metadata: { plan: { tier: 'gold' } },
    user_metadata: { team: 7, username: 'ada' },
  })
  expect(user.app_metadata).toEqual(expect.objectContaining(metadata.app_metadata))
})

test('a path through a prototype reads nothing and changes no other object', async () => {
  const user = { ...(await stored()), user_metadata: JSON.parse('{"__proto__": {"team": 7}}') }
  const paths = ['user_metadata.constructor.name', 'user_metadata.toString', 'user_metadata.__proto__.team']
  const claims = claimsOf(user, ['odd'], [{ name: 'odd', claims: paths }])
  expect(JSON.stringify(claims)).toMatch(/^{"user_metadata":{"__proto__":{"team":7}}}$/)
  expect(Object.prototype).not.toHaveProperty('team')
})
