// An auth whose OAuth server is enabled, for the guides about it.
import { onTestFinished, vi } from 'vitest'
import { findFreePort } from '../../packages/common/src/dev/dev-ports.ts'
import { openPage, send } from '../../services/auth/src/flows/pages/testing/pages.ts'
import { adminBy } from './jwt.ts'
import type { Shell } from './shell.ts'

export interface OAuthService {
  url: string
  /** Opening of a block that calls the admin API. */
  token: string
  /** Creates a user with a password; returns headers of a session. */
  signIn(email: string): Promise<{ authorization: string }>
  /** Withdraws the consent of a user, as an administrator. */
  withdraw(userId: string, clientId: string): Promise<void>
}

/** Settings of a service that stands for itself: its issuer is its address. */
export async function ownAddress(): Promise<{ url: string; settings: Record<string, string> }> {
  const port = String(await findFreePort())
  const url = `http://127.0.0.1:${port}`
  return { url, settings: { AUTH_PORT: port, AUTH_API_EXTERNAL_URL: url } }
}

const PASSWORD = 'correct horse'

/** Starts auth with the variables of a file that is written in the shell's folder. */
export async function startOAuthService(
  shell: Shell,
  { url, file, secret }: { url: string; file: string; secret: string | undefined },
): Promise<OAuthService> {
  const started = shell.start(`set -a; . ./${file}; exec npx -y pnpm@12 -C services/auth start`)
  await started.says(/listening at (http:[^"]+)"/)
  const { authorization } = adminBy(secret)
  const send = async (path: string, body: object, headers = {}) => {
    const answer = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return answer.json()
  }
  return {
    url,
    token: `export ADMIN_TOKEN=${authorization.slice('Bearer '.length)}\n`,
    async signIn(email) {
      const account = { email, password: PASSWORD }
      await send('/admin/users', { ...account, email_confirm: true }, { authorization })
      const { access_token: token } = (await send('/token?grant_type=password', account)) as { access_token: string }
      return { authorization: `Bearer ${token}` }
    },
    async withdraw(userId, clientId) {
      await fetch(`${url}/admin/users/${userId}/oauth/grants/${clientId}`, {
        method: 'DELETE',
        headers: { authorization },
      })
    },
  }
}

/** Goes where an application sends a browser, agrees for the user, and returns the address that leads back. */
export async function agree(location: string | URL, session: { authorization: string }): Promise<string> {
  const asked = await fetch(location, { redirect: 'manual' })
  const page = new URL(asked.headers.get('location') ?? '', location)
  const path = `${page.origin}/oauth/authorizations/${page.searchParams.get('authorization_id')}`
  const details = (await (await fetch(path, { headers: session })).json()) as { redirect_url?: string }
  if (details.redirect_url) return details.redirect_url
  const answer = await fetch(`${path}/consent`, {
    method: 'POST',
    headers: { ...session, 'content-type': 'application/json' },
    body: JSON.stringify({ action: 'approve' }),
  })
  return ((await answer.json()) as { redirect_url: string }).redirect_url
}

/** Enters the code of a device on its page and agrees, as a browser without scripts does. The user exists. */
export async function connectDevice(page: string, code: string, email: string): Promise<void> {
  const origin = new URL(page).origin
  const cookies = new Map<string, string>()
  const call = async (path: string, body?: URLSearchParams) => {
    const headers = { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') }
    const method = body ? 'POST' : 'GET'
    const answer = await fetch(new URL(path, origin), { method, headers, redirect: 'manual', ...(body && { body }) })
    for (const each of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get('location')?.replace(origin, '')
    return { status: answer.status, body: undefined, text: await answer.text(), headers: { location } }
  }
  const door = {
    get: (path: string) => call(path),
    submit: (path: string, form: Record<string, string>) => call(path, new URLSearchParams(form)),
  }
  const asked = await send(door, await openPage(door, page.replace(origin, '')), { address: email })
  const entry = await send(door, asked, { password: PASSWORD })
  await send(door, await send(door, entry, { code }), { answer: 'allow' })
}

/** Sets variables that the code of a guide reads when it is imported, until the test ends. */
export function giveEnvironment(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
}
