// Scopes for other services (contract/auth-oauth-server.md 3).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { oauthServerVariables } from '../../../config/oauth/oauth-server.ts'

const PATH = '/admin/oauth/scopes'
const OF_SETTINGS = { name: 'billing:read', description: 'Read invoices' }

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_OAUTH_SERVER_SCOPES: JSON.stringify([OF_SETTINGS]),
  })
})
afterAll(() => service.close())

let names = 0
const scope = () => ({ name: `reports:${++names}`, description: 'Read reports' })
const create = (body: object) => service.post(PATH, body, service.admin)
const change = (name: string, body: object) => service.put(`${PATH}/${name}`, body, service.admin)
const read = (name: string) => service.get(`${PATH}/${name}`, service.admin)
const refused = (msg: unknown) => ({ status: 400, body: { error_code: 'validation_failed', msg } })

test('a scope is answered with its defaults, listed beside those of the settings, and changed by member', async () => {
  const given = scope()
  const made = await create({ ...given, unknown: 'x' })
  const now = service.clock.now().toISOString()
  const shown = { ...given, descriptions: {}, claims: [], default: false, origin: 'admin_api' }
  expect([made.status, made.body]).toEqual([201, { ...shown, created_at: now, updated_at: now }])
  expect((await read(given.name)).body).toEqual(made.body)
  const { scopes } = (await service.get(PATH, service.admin)).body
  const first = { ...OF_SETTINGS, descriptions: {}, claims: [], default: false, origin: 'settings' }
  expect(scopes[0]).toEqual(first)
  expect(scopes).toContainEqual(made.body)
  expect((await read(OF_SETTINGS.name)).body).toEqual(first)

  const members = { descriptions: { de: 'Berichte lesen' }, claims: ['app_metadata.plan.tier'], default: true }
  expect((await change(given.name, members)).body).toMatchObject({ ...given, ...members })
  expect((await service.delete(`${PATH}/${given.name}`, service.admin)).status).toBe(204)
  expect(await read(given.name)).toMatchObject({ status: 404, body: { error_code: 'oauth_scope_not_found' } })
})

const WRONG: [object, string][] = [
  [{ name: undefined }, 'name must begin with'],
  [{ name: 'Reports' }, 'name must begin with'],
  [{ name: ':x' }, 'name must begin with'],
  [{ name: 'a b' }, 'name must begin with'],
  [{ name: 'x'.repeat(65) }, 'name must begin with'],
  [{ name: 'openid' }, 'name must not be a standard scope'],
  [{ description: undefined }, 'description must have'],
  [{ description: ' ' }, 'description must have'],
  [{ description: 'x'.repeat(301) }, 'description must have'],
  [{ descriptions: { 'no tag': 'x' } }, 'descriptions must map'],
  [{ descriptions: { de: '' } }, 'descriptions must map'],
  [{ claims: ['email'] }, 'claims must list'],
  [{ claims: ['app_metadata'] }, 'claims must list'],
  [{ claims: ['app_metadata.a..b'] }, 'claims must list'],
  [{ claims: Array(31).fill('app_metadata.a') }, 'claims must list'],
]

test.each(WRONG)('a wrong scope is refused by API and start alike (%#)', async (fault, text) => {
  const wrong = { ...scope(), ...fault }
  expect(await create(wrong)).toMatchObject(refused(expect.stringContaining(text)))
  const { parse } = oauthServerVariables.OAUTH_SERVER_SCOPES
  expect(() => parse(JSON.stringify([OF_SETTINGS, wrong]))).toThrow(`has a wrong scope at position 2: ${text}`)
})

test.each([
  ['{}', 'must be a JSON list'],
  ['x', 'must be a JSON list'],
  ['[null]', 'has a wrong scope at position 1'],
  [JSON.stringify([{ ...OF_SETTINGS, default: 'yes' }]), 'default must be true or false'],
  [JSON.stringify([OF_SETTINGS, OF_SETTINGS]), 'must not name a scope twice'],
  [JSON.stringify(Array(101).fill(OF_SETTINGS)), 'must have at most 100 scopes'],
])('a wrong OAUTH_SERVER_SCOPES is refused at start (%#)', (value, text) => {
  expect(() => oauthServerVariables.OAUTH_SERVER_SCOPES.parse(value)).toThrow(text)
})

test.each([
  ['', []],
  ['*', 'any'],
  [' https://api.example , urn:example:reports,', ['https://api.example', 'urn:example:reports']],
])('resources of OAUTH_SERVER_RESOURCES %j are read', (value, resources) => {
  expect(oauthServerVariables.OAUTH_SERVER_RESOURCES.parse(value)).toEqual(resources)
})

test.each(['api', 'https://api.example/#x', 'https://api.example?x', 'https://a b.example', '*,https://api.example'])(
  'a wrong OAUTH_SERVER_RESOURCES is refused at start: %s',
  (value) => {
    expect(() => oauthServerVariables.OAUTH_SERVER_RESOURCES.parse(value)).toThrow('has a wrong resource at position 1')
  },
)

describe('a name', () => {
  test('that is taken is refused, also to the later of two at once', async () => {
    const given = scope()
    const answers = await Promise.all([create(given), create(given)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409])
    expect(await create(OF_SETTINGS)).toMatchObject({ status: 409, body: { error_code: 'conflict' } })
  })

  test('of the settings is neither changed nor deleted', async () => {
    const refusal = refused('billing:read is a scope of OAUTH_SERVER_SCOPES')
    expect(await change(OF_SETTINGS.name, { description: 'x' })).toMatchObject(refusal)
    expect(await service.delete(`${PATH}/${OF_SETTINGS.name}`, service.admin)).toMatchObject(refusal)
  })

  test.each(['nothing', 'No-Name', '%00'])('%s that no scope has is 404', async (name) => {
    const answers = [await read(name), await change(name, { default: true })]
    answers.push(await service.delete(`${PATH}/${name}`, service.admin))
    expect(answers).toMatchObject(Array(3).fill({ status: 404, body: { error_code: 'oauth_scope_not_found' } }))
  })

  test('never changes, and a change without members is refused', async () => {
    const given = scope()
    await create(given)
    expect(await change(given.name, { name: 'other' })).toMatchObject(refused('No fields provided for update'))
  })
})

test('a client may be registered for scopes of both origins, and keeps the name of a deleted one', async () => {
  const { name } = (await create(scope())).body
  const redirect_uris = ['https://app.example/callback']
  const asked = { redirect_uris, scope: `openid ${name} ${OF_SETTINGS.name}` }
  const { body } = await service.post('/admin/oauth/clients', asked, service.admin)
  expect(body.scope).toBe(asked.scope)
  await service.delete(`${PATH}/${name}`, service.admin)
  const changed = await service.put(`/admin/oauth/clients/${body.client_id}`, { client_name: 'x' }, service.admin)
  expect(changed.body).toMatchObject({ client_name: 'x', scope: asked.scope })
})

test('there are at most 100', async () => {
  await service.deps.pool.query('delete from oauth_scopes')
  await service.deps.pool.query(
    `insert into oauth_scopes select 's' || n, 'x', '{}', '[]', false, now(), now() from generate_series(1, 100) n`,
  )
  expect(await create(scope())).toMatchObject({ status: 400, body: { error_code: 'over_oauth_scope_quota' } })
})

test('while the server is disabled every path answers so, before the body is read', async () => {
  const off = await service.with({ AUTH_OAUTH_SERVER_ENABLED: 'false' })
  const disabled = { status: 404, body: { error_code: 'feature_disabled', msg: 'OAuth server is disabled' } }
  for (const path of [PATH, '/admin/oauth/clients']) {
    expect(await off.get(path, off.admin)).toMatchObject(disabled)
    expect(await off.post(path, { name: 1 }, off.admin)).toMatchObject(disabled)
    expect(await off.get(path, {})).toMatchObject({ status: 401 })
  }
  await off.close()
})
