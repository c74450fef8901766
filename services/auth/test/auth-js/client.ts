// Clients of the public library at a running service, which note what was called of them.
import { perFile } from '@services/common/testing/per-file'
import { AuthAdminApi, AuthClient, type GoTrueClient } from '@supabase/auth-js'
import { exportJWK, generateKeyPair } from 'jose'
import { TestRunner } from 'vitest'
import { test as base, linkPath, startTestService, type TestService } from '../service.ts'
import { type SmsUpstream, startSmsGateways } from '../upstreams/sms-gateways.ts'

export const password = 'correct horse'

export interface Running {
  service: TestService
  url: string
}

interface Texting extends Running {
  gateways: SmsUpstream
}

/**
 * Two running services: `open` has mail, SMS, anonymous users and an ES256 key, `strict` a secret and asks for nonces.
 */
export const test = base.extend<object & { open: Texting; strict: Texting }>({
  open: perFile(async () => {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true })
    const key = { ...(await exportJWK(privateKey)), kid: 'first', alg: 'ES256', key_ops: ['sign', 'verify'] }
    return startTexting({
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
      AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      AUTH_OAUTH_SERVER_ENABLED: 'true',
      AUTH_JWT_KEYS: JSON.stringify({ keys: [key] }),
      AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
      AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
      AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
      AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    })
  }),
  strict: perFile(() => startTexting({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' })),
})

/** Starts a service on a port of its own. */
export async function startRunning(settings: Record<string, string>) {
  const service = await startTestService(settings)
  const url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  return { service, url, close: () => service.close() }
}

/** Starts one whose SMS go to `gateways`. */
async function startTexting(settings: Record<string, string>) {
  const gateways = await startSmsGateways()
  const running = await startRunning({
    ...gateways.settings('twilio'),
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    ...settings,
  })
  const close = async () => {
    await running.close()
    await gateways.close()
  }
  return { ...running, gateways, close }
}

/** Titles of the tests that called a method, by its path, as `signUp` or `admin.mfa.listFactors`. */
export const callers = new Map<string, Set<string>>()

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
const isGroup = (value: unknown): value is object =>
  Object.values(value ?? {}).some((member) => typeof member === 'function')

/** The object, noting each method when it is called, those of its groups too. */
function noting<Target extends object>(target: Target, path = ''): Target {
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return isGroup(value) ? noting(value, `${path}${String(name)}.`) : value
      return (...given: unknown[]) => {
        noteCall(path + String(name))
        return value.apply(target, given)
      }
    },
  })
}

function noteCall(method: string): void {
  const titles = callers.get(method) ?? new Set()
  callers.set(method, titles.add(TestRunner.getCurrentTest()?.name ?? ''))
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
export async function smsCode({ gateways }: Texting, phone: string): Promise<string> {
  const { text } = await gateways.waitFor(phone)
  gateways.messages.length = 0
  return /\d{6}/.exec(text)?.[0] as string
}
