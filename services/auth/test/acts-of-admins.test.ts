// Every route of the admin API and every command leaves an audit entry under the name of its actor, or changes nothing.
// A new one without a row here fails.
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { commands } from '../src/commands.ts'
import type { AuditAction } from '../src/core/audit/actions.ts'
import { NIL_UUID } from '../src/db/uuid.ts'
import { approved, registered } from '../src/flows/oauth-server/testing/applications.ts'
import { freshEmail, remove } from './admin.ts'
import { expectKnownMembers } from './audit-members.ts'
import { authHere } from './command-line.ts'
import { withTotp } from './second-factors.ts'
import { type Answer, startTestService, type TestService } from './service.ts'
import { addPausedReceiver } from './upstreams/paused-receiver.ts'
import { PASSKEYS, withPasskey } from './webauthn/passkeys.ts'

const password = 'correct horse'

let service: TestService
/** An admin with a session: the entry has to name this person, not a role. */
let admin: { id: string; auth: { authorization: string } }
beforeAll(async () => {
  service = await startTestService({
    ...PASSKEYS,
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
    AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_CONSOLE_ENABLED: 'true',
    AUTH_HOSTED_PAGES_ENABLED: 'true',
  })
  const email = freshEmail()
  const { userId: id } = await service.signedIn(email, password)
  await service.put(`/admin/users/${id}`, { role: 'service_role' }, service.admin)
  const { body } = await service.post('/token?grant_type=password', { email, password })
  admin = { id, auth: { authorization: `Bearer ${body.access_token}` } }
  return () => service.close()
})

interface Entry {
  id: string
  payload: { action: string; actor_id: string; actor_username: string; actor_name?: string; traits?: object }
}

async function entries(): Promise<Entry[]> {
  await service.settled()
  const { rows } = await service.deps.pool.query('select id, payload from audit_log_entries')
  expectKnownMembers(rows.map(({ payload }) => payload))
  return rows
}

/** Result of `work`, and the entries that it leaves. */
async function audited<Result>(work: () => Promise<Result>) {
  const before = new Set((await entries()).map(({ id }) => id))
  const result = await work()
  const left = (await entries()).filter(({ id }) => !before.has(id)).map(({ payload }) => payload)
  return { result, left }
}

const byUser = async () => {
  const email = freshEmail()
  const { userId: id } = await service.signedIn(email, password)
  return { id, email }
}
const byAdmin = async (user: object) => (await service.post('/admin/users', user, service.admin)).body as { id: string }

/** An act that its target is ready for. `target` is the user that the entry names, or comes with the answer. */
interface Ready {
  walk: () => Promise<Answer>
  /** User it is done to; null: none. */
  target?: string | null
  traits?: object
}
type Act = [AuditAction, (as: { authorization: string }) => Promise<Ready>]

const linkAct =
  (type: string, more: object = {}, verification = type): Act[1] =>
  async (as) => {
    const isNew = type === 'signup' || type === 'invite'
    const { email } = isNew ? { email: freshEmail() } : await byUser()
    const walk = () => service.post('/admin/generate_link', { type, email, ...more }, as)
    return { walk, traits: { type: verification } }
  }

async function byTrustedDevice(): Promise<{ target: string; device_id: string }> {
  const { userId: target, auth } = await withTotp(service)
  return { target, device_id: (await service.post('/factors/trusted-devices', {}, auth)).body.id }
}

let providers = 0
const customProvider = () => ({
  ...{ provider_type: 'oauth2', identifier: `custom:acts-${++providers}`, name: 'Acts', client_id: 'acts' },
  ...{ authorization_url: 'https://8.8.8.8/a', token_url: 'https://8.8.8.8/t', userinfo_url: 'https://8.8.8.8/u' },
})

async function addedProvider() {
  const provider = customProvider()
  await service.post('/admin/custom-providers', provider, service.admin)
  return provider
}

const oauthClient = { redirect_uris: ['https://acts.example/callback'] }
const oauthScope = () => ({ name: `acts:${++providers}`, description: 'Acts' })

const addedClient = async () =>
  (await service.post('/admin/oauth/clients', oauthClient, service.admin)).body as { client_id: string }
const addedScope = async () =>
  (await service.post('/admin/oauth/scopes', oauthScope(), service.admin)).body as { name: string }

/** An act on a client or scope that was added before. */
const onAdded =
  <Added>(add: () => Promise<Added>, act: (added: Added, as: { authorization: string }) => Ready): Act[1] =>
  async (as) =>
    act(await add(), as)

/** A message that was refused, to a new user. */
async function failedInvitation(): Promise<{ id: string; target: string }> {
  await service.mailbox.answer(550)
  const { body } = await service.post('/invite', { email: freshEmail() }, service.admin)
  const failed = async () =>
    (await service.get(`/admin/messages?user_id=${body.id}&state=failed`, service.admin)).body.messages
  await expect.poll(failed).toHaveLength(1)
  await service.mailbox.accept()
  const [{ id }] = await failed()
  return { id, target: body.id }
}

const ROUTES: Record<string, Act[]> = {
  'POST /admin/users': [
    ['user_signedup', async (as) => ({ walk: () => service.post('/admin/users', { email: freshEmail() }, as) })],
  ],
  'POST /admin/users/{user_id}': [
    [
      'user_signedup',
      async (as) => {
        const target = crypto.randomUUID()
        return { walk: () => service.post(`/admin/users/${target}`, { email: freshEmail() }, as), target }
      },
    ],
  ],
  'PUT /admin/users/{user_id}': [
    { role: 'editor' },
    { password: 'another horse' },
    { email: 'changed@example.com' },
    { email_confirm: true },
    { ban_duration: '1h' },
    { user_metadata: { a: 1 } },
  ].map(
    (change): Act => [
      'user_modified',
      async (as) => {
        const { id: target } = await byAdmin({ email: freshEmail() })
        return { walk: () => service.put(`/admin/users/${target}`, change, as), target }
      },
    ],
  ),
  'DELETE /admin/users/{user_id}': [true, false].map(
    (should_soft_delete): Act => [
      'user_deleted',
      async (as) => {
        const { id: target } = await byUser()
        return { walk: () => remove(service, `/admin/users/${target}`, as, { should_soft_delete }), target }
      },
    ],
  ),
  'DELETE /admin/users/{user_id}/sessions': [
    [
      'logout',
      async (as) => {
        const { id: target } = await byUser()
        return { walk: () => service.delete(`/admin/users/${target}/sessions`, as), target }
      },
    ],
  ],
  'DELETE /admin/users/{user_id}/sessions/{session_id}': [
    [
      'logout',
      async (as) => {
        const { id: target } = await byUser()
        const [{ id: session_id }] = (await service.get(`/admin/users/${target}/sessions`, as)).body
        const walk = () => service.delete(`/admin/users/${target}/sessions/${session_id}`, as)
        return { walk, target, traits: { session_id } }
      },
    ],
  ],
  'PUT /admin/users/{user_id}/factors/{factor_id}': [
    [
      'factor_updated',
      async (as) => {
        const { userId: target, totp } = await withTotp(service)
        const walk = () => service.put(`/admin/users/${target}/factors/${totp.id}`, { friendly_name: 'a' }, as)
        return { walk, target, traits: { factor_id: totp.id, factor_type: 'totp' } }
      },
    ],
  ],
  'DELETE /admin/users/{user_id}/passkeys/{passkey_id}': [
    [
      'passkey_deleted',
      async (as) => {
        const { userId: target, passkeyId } = await withPasskey(service)
        const walk = () => service.delete(`/admin/users/${target}/passkeys/${passkeyId}`, as)
        return { walk, target, traits: { passkey_id: passkeyId } }
      },
    ],
  ],
  'DELETE /admin/users/{user_id}/oauth/grants/{client_id}': [
    [
      'token_revoked',
      async (as) => {
        const { userId: target, auth } = await service.signedIn()
        const { clientId } = await registered(service)
        await approved(service, clientId, auth)
        const walk = () => service.delete(`/admin/users/${target}/oauth/grants/${clientId}`, as)
        return { walk, target, traits: { oauth_client_id: clientId, action: 'revoke_oauth_grant' } }
      },
    ],
  ],
  'DELETE /admin/users/{user_id}/factors/{factor_id}': ['totp', 'recovery_code'].map(
    (factor_type): Act => [
      'factor_deleted',
      async (as) => {
        const { userId: target } = await withTotp(service)
        const factors: { id: string; factor_type: string }[] = (await service.get(`/admin/users/${target}/factors`, as))
          .body
        const factor_id = factors.find((factor) => factor.factor_type === factor_type)?.id
        const walk = () => service.delete(`/admin/users/${target}/factors/${factor_id}`, as)
        return { walk, target, traits: { factor_id, factor_type } }
      },
    ],
  ),
  'DELETE /admin/users/{user_id}/trusted-devices': [
    [
      'trusted_device_removed',
      async (as) => {
        const { target } = await byTrustedDevice()
        return {
          walk: () => service.delete(`/admin/users/${target}/trusted-devices`, as),
          target,
          traits: { devices: 1 },
        }
      },
    ],
  ],
  'DELETE /admin/users/{user_id}/trusted-devices/{device_id}': [
    [
      'trusted_device_removed',
      async (as) => {
        const { target, device_id } = await byTrustedDevice()
        const walk = () => service.delete(`/admin/users/${target}/trusted-devices/${device_id}`, as)
        return { walk, target, traits: { device_id } }
      },
    ],
  ],
  'POST /admin/messages/{message_id}/retry': [
    [
      'message_retried',
      async (as) => {
        const { id, target } = await failedInvitation()
        return { walk: () => service.post(`/admin/messages/${id}/retry`, {}, as), target }
      },
    ],
  ],
  'POST /admin/custom-providers': [
    [
      'custom_provider_created',
      async (as) => {
        const provider = customProvider()
        const walk = () => service.post('/admin/custom-providers', provider, as)
        const traits = { provider: provider.identifier, provider_type: 'oauth2', fields: Object.keys(provider) }
        return { walk, target: null, traits }
      },
    ],
  ],
  'PUT /admin/custom-providers/{identifier}': [
    [
      'custom_provider_updated',
      async (as) => {
        const { identifier: provider } = await addedProvider()
        const walk = () => service.put(`/admin/custom-providers/${provider}`, { enabled: false }, as)
        return { walk, target: null, traits: { provider, fields: ['enabled'] } }
      },
    ],
  ],
  'DELETE /admin/custom-providers/{identifier}': [
    [
      'custom_provider_deleted',
      async (as) => {
        const { identifier: provider } = await addedProvider()
        const walk = () => service.delete(`/admin/custom-providers/${provider}`, as)
        return { walk, target: null, traits: { provider } }
      },
    ],
  ],
  'POST /admin/oauth/clients': [
    [
      'oauth_client_created',
      async (as) => ({
        walk: () => service.post('/admin/oauth/clients', oauthClient, as),
        target: null,
        traits: { client_id: expect.any(String), fields: ['redirect_uris'] },
      }),
    ],
  ],
  'PUT /admin/oauth/clients/{client_id}': [
    [
      'oauth_client_updated',
      onAdded(addedClient, ({ client_id }, as) => ({
        walk: () => service.put(`/admin/oauth/clients/${client_id}`, { client_name: 'Acts' }, as),
        target: null,
        traits: { client_id, fields: ['client_name'] },
      })),
    ],
  ],
  'DELETE /admin/oauth/clients/{client_id}': [
    [
      'oauth_client_deleted',
      onAdded(addedClient, ({ client_id }, as) => ({
        walk: () => service.delete(`/admin/oauth/clients/${client_id}`, as),
        target: null,
        traits: { client_id },
      })),
    ],
  ],
  'POST /admin/oauth/clients/{client_id}/regenerate_secret': [
    [
      'oauth_client_secret_rotated',
      onAdded(addedClient, ({ client_id }, as) => ({
        walk: () => service.post(`/admin/oauth/clients/${client_id}/regenerate_secret`, {}, as),
        target: null,
        traits: { client_id },
      })),
    ],
  ],
  'POST /admin/oauth/scopes': [
    [
      'oauth_scope_created',
      async (as) => {
        const scope = oauthScope()
        const traits = { scope: scope.name, fields: ['name', 'description'] }
        return { walk: () => service.post('/admin/oauth/scopes', scope, as), target: null, traits }
      },
    ],
  ],
  'PUT /admin/oauth/scopes/{name}': [
    [
      'oauth_scope_updated',
      onAdded(addedScope, ({ name: scope }, as) => ({
        walk: () => service.put(`/admin/oauth/scopes/${scope}`, { default: true }, as),
        target: null,
        traits: { scope, fields: ['default'] },
      })),
    ],
  ],
  'DELETE /admin/oauth/scopes/{name}': [
    [
      'oauth_scope_deleted',
      onAdded(addedScope, ({ name: scope }, as) => ({
        walk: () => service.delete(`/admin/oauth/scopes/${scope}`, as),
        target: null,
        traits: { scope },
      })),
    ],
  ],
  'GET /admin/audit/export': [
    [
      'audit_exported',
      async (as) => {
        const walk = () => service.get('/admin/audit/export?query=action:none&format=csv', as)
        return { walk, target: null, traits: { type: 'csv' } }
      },
    ],
  ],
  'GET /admin/users/{user_id}/export': [
    [
      'account_exported',
      async (as) => {
        const { id: target } = await byUser()
        return { walk: () => service.get(`/admin/users/${target}/export`, as), target }
      },
    ],
  ],
  'POST /admin/users/{user_id}/recover': [
    [
      'user_recovery_requested',
      async (as) => {
        const { id: target } = await byUser()
        return { walk: () => service.post(`/admin/users/${target}/recover`, {}, as), target }
      },
    ],
  ],
  'POST /invite': [
    ['user_invited', async (as) => ({ walk: () => service.post('/invite', { email: freshEmail() }, as) })],
  ],
  'POST /admin/generate_link': [
    ['link_generated', linkAct('signup', { password })],
    ['link_generated', linkAct('invite')],
    ['link_generated', linkAct('magiclink')],
    ['link_generated', linkAct('recovery')],
    ['link_generated', linkAct('email_change_current', { new_email: 'link-next@example.com' })],
    ['link_generated', linkAct('email_change_new', { new_email: 'link-next@example.com' })],
  ],
}

/** An act on a disabled receiver of events. */
const onWebhook = (
  action: AuditAction,
  walk: (path: string, as: { authorization: string }) => Promise<Answer>,
): Act[] => [
  [
    action,
    async (as) => {
      const webhook_id = await addPausedReceiver(service)
      return { walk: () => walk(`/admin/webhooks/${webhook_id}`, as), target: null, traits: { webhook_id } }
    },
  ],
]

Object.assign(ROUTES, {
  'POST /admin/webhooks': [
    [
      'webhook_created',
      async (as) => {
        const input = { url: 'https://127.0.0.1:1/', enabled: false }
        return { walk: () => service.post('/admin/webhooks', input, as), target: null }
      },
    ],
  ],
  'PUT /admin/webhooks/{webhook_id}': onWebhook('webhook_updated', (path, as) =>
    service.put(path, { description: 'a' }, as),
  ),
  'DELETE /admin/webhooks/{webhook_id}': onWebhook('webhook_deleted', (path, as) => service.delete(path, as)),
  'POST /admin/webhooks/{webhook_id}/rotate-secret': onWebhook('webhook_secret_rotated', (path, as) =>
    service.post(`${path}/rotate-secret`, {}, as),
  ),
  'POST /admin/webhooks/{webhook_id}/test': onWebhook('webhook_tested', (path, as) =>
    service.post(`${path}/test`, {}, as),
  ),
  'POST /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/retry': [
    [
      'webhook_delivery_retried',
      async (as) => {
        const webhook_id = await addPausedReceiver(service)
        await byUser()
        const path = `/admin/webhooks/${webhook_id}/deliveries`
        const event_id = (await service.get(path, as)).body.deliveries[0].id
        const walk = () => service.post(`${path}/${event_id}/retry`, {}, as)
        return { walk, target: null, traits: { webhook_id, event_id } }
      },
    ],
  ],
  'POST /admin/providers/{provider}/test': [
    [
      'provider_tested',
      async (as) => {
        const { identifier: provider } = await addedProvider()
        const walk = () => service.post(`/admin/providers/${provider}/test`, {}, as)
        return { walk, target: null, traits: { provider } }
      },
    ],
  ],
  'POST /admin/mail-templates/{kind}/send': [
    [
      'mail_sample_sent',
      async (as) => ({
        walk: () => service.post('/admin/mail-templates/invite/send', {}, as),
        target: null,
        traits: { kind: 'invite' },
      }),
    ],
  ],
} satisfies Record<string, Act[]>)

/** Routes that only read. */
const READS = [
  'GET /admin/users',
  'GET /admin/users/{user_id}',
  'GET /admin/users/{user_id}/sessions',
  'GET /admin/users/{user_id}/factors',
  'GET /admin/users/{user_id}/trusted-devices',
  'GET /admin/users/{user_id}/passkeys',
  'GET /admin/users/{user_id}/oauth/grants',
  'GET /admin/audit',
  'GET /admin/messages',
  'GET /admin/statistics',
  'GET /admin/custom-providers',
  'GET /admin/custom-providers/{identifier}',
  'GET /admin/oauth/clients',
  'GET /admin/oauth/clients/{client_id}',
  'GET /admin/oauth/clients/{client_id}/statistics',
  'GET /admin/oauth/scopes',
  'GET /admin/oauth/scopes/{name}',
  'GET /admin/webhooks',
  'GET /admin/webhooks/{webhook_id}',
  'GET /admin/webhooks/{webhook_id}/deliveries',
  'GET /admin/providers',
  'GET /admin/providers/tests/{test_id}',
  'GET /admin/hooks',
  'GET /admin/mail-templates',
  'GET /admin/mail-templates/{kind}',
  'GET /admin/settings',
  'GET /admin/keys',
]

test('every route of an admin is an act below, or reads', async () => {
  const { paths } = (await service.get('/openapi.json')).body
  const routes = Object.entries<Record<string, { tags: string[]; security?: object[] }>>(paths).flatMap(
    ([path, operations]) =>
      Object.entries(operations)
        .filter(([, { tags, security = [] }]) => tags.includes('admin') || security.some((each) => 'admin' in each))
        .map(([method]) => `${method.toUpperCase()} ${path}`),
  )
  expect(routes.toSorted()).toEqual([...Object.keys(ROUTES), ...READS].toSorted())
})

const acts = Object.entries(ROUTES).flatMap(([route, all]) =>
  all.map((act, index) => [`${route} ${index}`, act] as const),
)

test.for(acts)('the admin is the actor of %s', async ([, [action, prepare]]) => {
  const { walk, target, traits } = await prepare(admin.auth)
  const { result, left } = await audited(walk)
  expect([200, 201, 202, 204]).toContain(result.status)
  // None under the name of the user it was done to.
  expect(left.map(({ actor_id, actor_username }) => [actor_id, actor_username])).toEqual(
    left.map(() => [admin.id, 'service_role']),
  )
  const named = { ...(target !== null && { user_id: target ?? result.body.id }), ...traits }
  expect(left).toContainEqual(expect.objectContaining({ action, traits: expect.objectContaining(named) }))
})

test.for(READS)('%s leaves none', async (route) => {
  const { id } = await byUser()
  const { identifier } = await addedProvider()
  // There can be twenty.
  const webhookId = route.includes('{webhook_id}') ? await addPausedReceiver(service) : ''
  const ids = {
    '{user_id}': id,
    '{identifier}': identifier,
    '{client_id}': (await addedClient()).client_id,
    '{name}': (await addedScope()).name,
    '{webhook_id}': webhookId,
    '{test_id}': id,
    '{kind}': 'invite',
  }
  const url = Object.entries(ids).reduce((url, [name, value]) => url.replace(name, value), route.replace('GET ', ''))
  const { result, left } = await audited(() => service.get(url, admin.auth))
  expect([result.status, left]).toEqual([200, []])
})

/** A command line that acts; `{user}`, `{factor}`, `{message}` stand for ids, and `{file}` for an import of two. */
type Line = [AuditAction, string, { input?: string; traits?: object; target?: 'user' | 'made' }?]

const COMMANDS: Record<string, Line[]> = {
  'admin create': [
    ['user_signedup', 'admin create --email cli-admin@example.com --password-stdin', { input: 'correct horse' }],
  ],
  'users create': [['user_signedup', 'users create --email cli-made@example.com --json', { target: 'made' }]],
  'users ban': [['user_modified', 'users ban {user} --for 1h', { target: 'user' }]],
  'users unban': [['user_modified', 'users unban {user}', { target: 'user' }]],
  'users set-password': [
    ['user_modified', 'users set-password {user} --password-stdin', { input: 'another horse', target: 'user' }],
  ],
  'users set-role': [['user_modified', 'users set-role {user} editor', { target: 'user' }]],
  'users confirm': [['user_modified', 'users confirm {user}', { target: 'user' }]],
  'users set-email': [
    ['user_modified', 'users set-email {user} cli-moved@example.com', { target: 'user' }],
    ['user_modified', 'users set-email {user} cli-moved-2@example.com --confirm', { target: 'user' }],
  ],
  'users sign-out': [['logout', 'users sign-out {user}', { target: 'user', traits: { sessions: 1 } }]],
  'users remove-factor': [
    ['factor_deleted', 'users remove-factor {user} {factor}', { target: 'user', traits: { factor_type: 'totp' } }],
  ],
  'messages retry': [['message_retried', 'messages retry {message}', { traits: { channel: 'mail', kind: 'invite' } }]],
  'webhooks replay': [['webhooks_replayed', 'webhooks replay --since 1h', {}]],
  'users delete': [
    ['user_deleted', 'users delete {user} --yes', { target: 'user' }],
    ['user_deleted', 'users delete {user} --soft --yes', { target: 'user' }],
  ],
  'keys encryption rotate': [['encryption_rotated', 'keys encryption rotate', { traits: { key_id: null } }]],
  'users import': [['users_imported', 'users import {file}', { traits: { users: 2 } }]],
  'users export': [
    ['users_exported', 'users export', { traits: { with_hashes: false } }],
    ['users_exported', 'users export --with-hashes', { traits: { with_hashes: true } }],
  ],
}

/** Commands that change and disclose nothing of a user, with the reason where that is not plain. */
const NO_ACTS = {
  serve: '',
  worker: '',
  migrate: 'the list of migrations has the time of each',
  'migrate status': '',
  'config check': '',
  'config table': '',
  version: '',
  'keys generate': 'stored nowhere',
  'keys encryption status': '',
  'hook test': 'sends a sample and changes nothing',
  'tokens admin': 'needs no database; what its token does has entries',
  'users list': 'reads like GET /admin/users',
  'users show': 'reads like GET /admin/users/{user_id}',
  'messages list': 'reads like GET /admin/messages',
  'audit export': 'reads like GET /admin/audit',
  'mail preview': '',
  'mail test': 'a mail to an address of the operator',
  'redirect check': '',
}

test('every command is an act below, or none', () => {
  const names = commands.map(({ name }) => name)
  expect(names.toSorted()).toEqual([...Object.keys(COMMANDS), ...Object.keys(NO_ACTS)].toSorted())
})

const lines = Object.values(COMMANDS).flat()

describe('the command line', () => {
  const run = async (line: string, input = '') => {
    const settings = { AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_PASSWORD_HASH_MEMORY_KIB: '64' }
    const { code, stdout, stderr } = await authHere(line.split(' '), settings, input)
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  }
  const byUserId = async () => ({ userId: (await byUser()).id, totp: { id: '' } })
  const withFile = async (users: object[], work: (file: string) => Promise<void>) => {
    const folder = await mkdtemp(join(tmpdir(), 'acts-'))
    const file = join(folder, 'users.jsonl')
    await writeFile(file, users.map((user) => JSON.stringify(user)).join('\n'))
    await work(file).finally(() => rm(folder, { recursive: true }))
  }
  /** The account of this machine under which the tests run. */
  const operator = {
    actor_id: NIL_UUID,
    actor_username: 'cli',
    actor_name: `${userInfo().username}@${hostname()}`,
  }

  test.for(lines)('is the actor of %s %s', async ([action, line, { input, traits, target } = {}]) => {
    const { userId: id, totp } = line.includes('{factor}') ? await withTotp(service) : await byUserId()
    const message = line.includes('{message}') ? (await failedInvitation()).id : ''
    await withFile([{ email: freshEmail() }, { email: freshEmail() }], async (file) => {
      const ids = { '{user}': id, '{factor}': totp.id, '{message}': message, '{file}': file }
      const typed = Object.entries(ids).reduce((typed, [name, value]) => typed.replace(name, value), line)
      const { result, left } = await audited(() => run(typed, input))
      const user = { user: { user_id: id }, made: { user_id: target === 'made' && JSON.parse(result).id } }
      expect(left).toEqual([expect.objectContaining({ action, ...operator })])
      expect(left[0]?.traits).toMatchObject({ ...traits, ...(target && user[target]) })
    })
  })

  test('names the input of an import by size and hash, and leaves none for a dry run or a repetition', async () => {
    await withFile([{ email: freshEmail() }], async (file) => {
      const bytes = await readFile(file)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      expect((await audited(() => run(`users import ${file} --dry-run`))).left).toEqual([])
      const { left } = await audited(() => run('users import -', bytes.toString()))
      expect(left).toMatchObject([{ traits: { users: 1, bytes: bytes.length, sha256 } }])
      expect((await audited(() => run(`users import ${file}`))).left).toEqual([])
    })
  })

  test.for(['users list', 'audit export'])('leaves none with %s', async (line) => {
    expect((await audited(() => run(line))).left).toEqual([])
  })
})
