import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, callWithJson, expectStatus, expectString, unexpected } from './demo-call.ts'
import { confirmOnPage, type Report, showConsole, signInOnPages } from './demo-pages.ts'

type AuthWalk = { authUrl: string; inboxUrl: string; commandLine: string; report: Report }

/** Wait for a mail: the outbox delivers within a second, a busy machine takes longer. */
const MAIL_PATIENCE_MS = 20_000

/** Walks through a new user's requests: sign up, follow the mail's link, sign in by a page and by the API, refresh. */
export async function walkThroughAuth({ authUrl, inboxUrl, commandLine, report }: AuthWalk): Promise<void> {
  const email = `demo-${randomUUID().slice(0, 8)}@example.com`
  const password = `Demo-${randomUUID()}`

  const signup = await callWithJson('POST', `${authUrl}/signup`, { email, password })
  expectStatus(signup, 200)
  report('POST /signup', `${email} is user ${expectString(signup, 'id')}`)

  const mail = await waitForMail(inboxUrl, email)
  report('mail', `"${mail.subject}" ${inboxUrl}/messages/${mail.id}`)

  if (new URL(mail.link).pathname.endsWith('/ui/confirm')) await confirmOnPage(mail.link, report)
  else await followLink(mail.link, report)

  await signInOnPages({ authUrl, email, password, report })

  const signIn = await callWithJson('POST', `${authUrl}/token?grant_type=password`, { email, password })
  expectStatus(signIn, 200)
  const firstRefreshToken = expectString(signIn, 'refresh_token')
  report('POST /token (password)', `access token ${abbreviate(expectString(signIn, 'access_token'))}`)

  const refresh = await callWithJson('POST', `${authUrl}/token?grant_type=refresh_token`, {
    refresh_token: firstRefreshToken,
  })
  expectStatus(refresh, 200)
  const accessToken = expectString(refresh, 'access_token')
  if (expectString(refresh, 'refresh_token') === firstRefreshToken) {
    throw unexpected(refresh, 'a new refresh token', 'the one that was sent')
  }
  report('POST /token (refresh_token)', `access token ${abbreviate(accessToken)}, a new refresh token`)

  const user = await call('GET', `${authUrl}/user`, { headers: { authorization: `Bearer ${accessToken}` } })
  expectStatus(user, 200)
  if (expectString(user, 'email') !== email) throw unexpected(user, email, expectString(user, 'email'))
  report('GET /user', `${email}, role ${expectString(user, 'role')}`)

  await showConsole(authUrl, commandLine, report)
}

async function followLink(link: string, report: Report): Promise<void> {
  const verify = await call('GET', link)
  expectStatus(verify, 303)
  const location = verify.headers.get('location') ?? 'no Location'
  const [target, fragment] = location.split('#')
  if (!new URLSearchParams(fragment).get('access_token')) {
    throw unexpected(verify, 'Location with #access_token=', location)
  }
  report('GET /verify', `303 to ${target} with an access token`)
}

async function waitForMail(inboxUrl: string, to: string): Promise<{ id: string; subject: string; link: string }> {
  const deadline = Date.now() + MAIL_PATIENCE_MS
  while (Date.now() < deadline) {
    const list = await call('GET', `${inboxUrl}/api/messages?to=${encodeURIComponent(to)}`)
    expectStatus(list, 200)
    const { messages } = list.json as { messages: { id: number; subject: string; links: string[] }[] }
    const [mail] = messages
    if (mail) {
      const link = mail.links.find((address) => /\/(verify|ui\/confirm)$/.test(new URL(address).pathname))
      if (!link)
        throw unexpected(
          list,
          'a mail with a link to /ui/confirm or /verify',
          mail.links.join(' ') || 'a mail without links',
        )
      return { id: String(mail.id), subject: mail.subject, link }
    }
    await sleep(200)
  }
  throw unexpected({ request: 'mail' }, `a mail to ${to} within ${MAIL_PATIENCE_MS / 1000} s`, 'none')
}

const abbreviate = (token: string) => `${token.slice(0, 12)}… (${token.length} characters)`
