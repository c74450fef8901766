// Clients of the public library at a running service, which note what was called of them.
import { AuthAdminApi, AuthClient, type GoTrueClient } from '@supabase/auth-js'
import { exportJWK, generateKeyPair } from 'jose'
import { test as base, linkPath, startTestService, type TestService } from '../service.ts'
import { type SmsUpstream, startSmsGateways } from '../upstreams/sms-gateways.ts'

export const password = 'correct horse'

export interface Running {
  service: TestService
  gateways: SmsUpstream
  url: string
}

/** Two running services: `open` has mail, SMS, anonymous users and an ES256 key, `strict` a secret and asks for nonces. */
export const test = base.extend<object & { open: Running; strict: Running }>({
  open: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      const { privateKey } = await generateKeyPair('ES256', { extractable: true })
      const key = { ...(await exportJWK(privateKey)), kid: 'first', alg: 'ES256', key_ops: ['sign', 'verify'] }
      await running(
        {
          AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
          AUTH_JWT_KEYS: JSON.stringify({ keys: [key] }),
          AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
          AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
          AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
          AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
        },
        use,
      )
    },
    { scope: 'file' },
  ],
  strict: [
    // biome-ignore lint/correctness/noEmptyPattern: as above
    async ({}, use) => {
      await running({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' }, use)
    },
    { scope: 'file' },
  ],
})

async function running(settings: Record<string, string>, use: (running: Running) => Promise<void>) {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    ...settings,
  })
  await use({ service, gateways, url: await service.app.listen({ port: 0, host: '127.0.0.1' }) })
  await service.close()
  await gateways.close()
}

/** Names of all methods that were called, as `signUp` or `admin.mfa.listFactors`. */
export const called = new Set<string>()

export type FlowType = 'implicit' | 'pkce'
type Options = Partial<ConstructorParameters<typeof AuthClient>[0]>

/** A client with a store of its own, as a browser's tab has; `asked` are the paths it asked for. */
export function clientOf({ url }: Running, flowType: FlowType = 'implicit', options: Options = {}) {
  const store = new Map<string, string>()
  const asked: string[] = []
  const client = new AuthClient({
    url,
    flowType,
    autoRefreshToken: false,
    persistSession: true,
    storage: {
      getItem: (key) => store.get(key) ?? null,
      setItem: (key, value) => void store.set(key, value),
      removeItem: (key) => void store.delete(key),
    },
    fetch: (input, init) => {
      asked.push(new URL(String(input)).pathname)
      return fetch(input, init)
    },
    ...options,
  })
  return { client: noting(client), store, asked }
}

/** The admin part of the library, with the token operators make. */
export const adminOf = ({ url, service }: Running) =>
  noting(new AuthAdminApi({ url, headers: { Authorization: service.admin.authorization } }), 'admin.')

/** Whether it is a group of methods, such as `mfa`. */
export const isGroup = (value: unknown): value is object =>
  Object.values(value ?? {}).some((member) => typeof member === 'function')

/** Private, as the types of the library say, although not by their names. */
const PRIVATE = ['signInWithEthereum', 'signInWithSolana', 'linkIdentityOAuth', 'linkIdentityIdToken', 'fetchJwk']

/** Names of all public methods of the installed library, as in `called`. */
export function methodsOfClient(): string[] {
  const url = 'http://127.0.0.1'
  return [...publicOf(new AuthClient({ url })), ...publicOf(new AuthAdminApi({ url }), 'admin.')]
}

/** Public methods of an object and its groups of methods, which have no class of their own. */
function publicOf(object: object, path = ''): string[] {
  const prototype = Object.getPrototypeOf(object)
  const methods = Object.entries(Object.getOwnPropertyDescriptors(prototype))
    .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor' && !name.startsWith('_'))
    .map(([name]) => name)
    .filter((name) => !PRIVATE.includes(name))
  const groups = Object.entries(object)
    .filter(([name]) => name !== 'admin' && name !== 'storage')
    .filter(([, value]) => isGroup(value))
    .flatMap(([name, group]) => membersOf(group, name))
  return [...methods, ...groups].map((name) => path + name)
}

/** A group's methods, with those of the groups in it; `client` is the way back. */
const membersOf = (group: object, name: string): string[] =>
  Object.entries(group)
    .filter(([member]) => member !== 'client' && !member.startsWith('_'))
    .flatMap(([member, value]) => (isGroup(value) ? membersOf(value, `${name}.${member}`) : [`${name}.${member}`]))

/** The object, noting each method when it is called, those of its groups too. */
function noting<Target extends object>(target: Target, path = ''): Target {
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return isGroup(value) ? noting(value, `${path}${String(name)}.`) : value
      return (...given: unknown[]) => {
        called.add(path + String(name))
        return value.apply(target, given)
      }
    },
  })
}

/** Where the browser is sent when the newest mail's link is followed. */
export async function follow({ service }: Running, email: string, after?: { id: number }): Promise<URL> {
  const mail = await service.mailbox.waitFor(email, after ? { after } : {})
  const answer = await service.get(linkPath(mail.text))
  return new URL(String(answer.headers.location))
}

export const newest = ({ service }: Running, email: string) => service.mailbox.messages({ to: email })[0]

/** A confirmed user, signed in with the client. */
export async function signIn(at: Running, client: GoTrueClient, email: string) {
  const made = { email, password, email_confirm: true }
  await at.service.post('/admin/users', made, at.service.admin)
  const { data, error } = await client.signInWithPassword({ email, password })
  if (error) throw error
  return data
}

/** The code of the newest message to a number. */
export async function smsCode({ gateways }: Running, phone: string): Promise<string> {
  const { text } = await gateways.waitFor(phone)
  gateways.messages.length = 0
  return /\d{6}/.exec(text)?.[0] as string
}
