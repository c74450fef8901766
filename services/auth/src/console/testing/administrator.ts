// Administrators of tests, signed in to the console as a browser is: by the cookie of the hosted pages.
import type { FastifyReply } from 'fastify'
import { decodeJwt } from 'jose'
import { withTotp } from '../../../test/second-factors.ts'
import type { SignedIn, TestService } from '../../../test/service.ts'
import { HOSTED_COOKIE, openBrowserSessions } from '../../http/hosted/browser-session.ts'

/** Headers that a browser sends with a request of the console's scripts. */
export const FROM_CONSOLE = { 'x-console': '1', 'sec-fetch-site': 'same-origin' }

/** Cookie of the hosted pages, as after a sign-in there. */
export function hostedCookie(service: TestService, { userId, accessToken }: SignedIn): string {
  const { session_id: sessionId } = decodeJwt<{ session_id: string }>(accessToken)
  let cookie = ''
  const reply = {
    header: (_name: string, value: string) => {
      cookie = value.split(';')[0] ?? ''
    },
  }
  openBrowserSessions(service.deps, HOSTED_COOKIE).begin(reply as unknown as FastifyReply, { userId, sessionId })
  return cookie
}

/** Answer to the way from the hosted pages into the console, with the cookies that the browser has then. */
export async function enterConsole(service: TestService, user: SignedIn) {
  const hosted = hostedCookie(service, user)
  const answer = await service.app.inject({ url: '/console/sign-in', headers: { cookie: hosted } })
  const given = answer.cookies.map(({ name, value }) => `${name}=${value}`)
  return { location: String(answer.headers.location), cookie: [hosted, ...given].join('; '), answer }
}

/** A user with an admin role and a session of aal2, in the console. */
export async function administratorOf(service: TestService, change: object = { role: 'service_role' }) {
  const user = await withTotp(service)
  await service.put(`/admin/users/${user.userId}`, change, service.admin)
  const { cookie } = await enterConsole(service, user)
  const call = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: object, headers = {}) => {
    const answer = await service.app.inject({
      ...{ method, url, headers: { host: 'auth.example', cookie, ...FROM_CONSOLE, ...headers } },
      ...(body && { payload: body }),
    })
    return { status: answer.statusCode, body: answer.payload ? answer.json() : undefined, cookies: answer.cookies }
  }
  return { ...user, cookie, call }
}
