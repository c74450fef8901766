// The session of the console: a cookie of its own, which only the console's pages can use, and a row of `sessions`. It
// gives the rights of an administrator to requests with the header `x-console`. Tests: console-session.test.ts.
import type { ApiError } from '@services/common/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { TRUSTED_DEVICE } from '../core/amr/second-methods.ts'
import { type Actor, recordOrigin } from '../core/audit/audit.ts'
import { hasProvenSecondFactor, isSecondProof } from '../core/factors/assurance.ts'
import { isAdministrator } from '../core/users/is-administrator.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { recordRefusedAdmin } from '../http/caller/admin-only.ts'
import { type BrowserCaller, openBrowserSessions } from '../http/hosted/browser-session.ts'
import { clientOf } from '../http/limits/client.ts'
import { markSessionUsed } from './console-session.store.ts'

/** A working day, and a break. */
const COOKIE = { name: 'console', sameSite: 'Strict', lifetimeSeconds: 8 * 3600, idleSeconds: 30 * 60 } as const

/** Age of a sign-in that still opens the console; an older one could be a browser that was left open. */
const SIGN_IN_SECONDS = 10 * 60

/** Methods of sign-ins that can begin with aal2. */
const BEGINS_AAL2: readonly string[] = ['passkey', TRUSTED_DEVICE]

export type ConsoleSessions = ReturnType<typeof createConsoleSessions>

export function createConsoleSessions(deps: Deps) {
  const { config, now } = deps
  const sessions = openBrowserSessions(deps, COOKIE)

  /**
   * Finds the session of a request by the console's own pages, whose audit entries get `via: console`. Throws
   * no_authorization, session_not_found.
   */
  async function callerOf(request: FastifyRequest, reply: FastifyReply): Promise<BrowserCaller> {
    const isOwn = request.headers['x-console'] !== undefined && isFromConsole(request, config.server)
    if (!isOwn || !isOnConsolePort(request, config.console)) throw apiError('no_authorization')
    recordVisit(request)
    const caller = await sessions.find(request, reply)
    if (!caller) throw apiError(sessions.named(request) ? 'session_not_found' : 'no_authorization')
    // The cookie is renewed once a minute.
    if (config.sessions.inactivitySeconds !== undefined && reply.hasHeader('set-cookie')) {
      await markSessionUsed(deps.db, caller.session.id, now())
    }
    return caller
  }

  const recordVisit = (request: FastifyRequest) =>
    recordOrigin(request.log, () => ({ ...clientOf(request, config), via: 'console' }))

  return {
    callerOf,
    begin: sessions.begin,
    end: sessions.end,

    /**
     * Returns the administrator of a request by the console's pages; undefined for a request without their header.
     * Throws as callerOf and requireAdministrator do, and records it as the refusal of a token.
     */
    async adminOf(request: FastifyRequest, reply: FastifyReply): Promise<Actor | undefined> {
      if (request.headers['x-console'] === undefined || request.headers.authorization !== undefined) return undefined
      try {
        const caller = await callerOf(request, reply)
        requireAdministrator(config, caller)
        return actorOf(caller)
      } catch (error) {
        await recordRefusedAdmin(deps, request, sessions.named(request)?.userId, error)
        throw error
      }
    },

    /** Returns the limits of the session, in seconds, for the page that warns before its end. */
    timesOf: (request: FastifyRequest) => ({
      idle_seconds: Math.min(COOKIE.idleSeconds, config.sessions.inactivitySeconds ?? COOKIE.idleSeconds),
      seconds_left: sessions.secondsLeft(request),
    }),

    /** Records that a signed-in user was not let in. */
    async recordRefusal(request: FastifyRequest, { user }: BrowserCaller, error: ApiError): Promise<void> {
      recordVisit(request)
      await recordRefusedAdmin(deps, request, user.id, error)
    },

    /**
     * Whether the session was begun, or raised by a second factor, just now. A password that renews a session of two
     * factors proves one of them, so it does not count.
     */
    isFresh: ({ session: { aal, amr } }: BrowserCaller): boolean =>
      amr.some(
        ({ method, timestamp }) =>
          (aal === 'aal1' || isSecondProof(method) || BEGINS_AAL2.includes(method)) &&
          timestamp + SIGN_IN_SECONDS > now().getTime() / 1000,
      ),
  }
}

export const actorOf = ({ user: { id, email, phone, user_metadata } }: BrowserCaller): Actor => ({
  ...{ id, email, phone, user_metadata },
})

/** Throws not_admin or insufficient_aal. A trusted device is no proof of a second factor. */
export function requireAdministrator(
  { console: { requiresMfa }, jwt, mfa }: Pick<Deps['config'], 'console' | 'jwt' | 'mfa'>,
  { user, session }: BrowserCaller,
): void {
  if (!isAdministrator(jwt, user)) throw apiError('not_admin')
  const needsFactor = requiresMfa || mfa.requiredFor !== 'nobody'
  if (needsFactor && !hasProvenSecondFactor(session)) throw apiError('insufficient_aal')
}

/**
 * Reports whether a page of this origin sent the request. Browsers name the sender in `Sec-Fetch-Site`, older ones and
 * those on plain http only with changes, in `Origin`. No other page can send the header `x-console` without CORS.
 */
function isFromConsole({ method, headers }: FastifyRequest, { externalUrl }: Deps['config']['server']): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  if (headers.origin !== undefined) return headers.origin === `${new URL(externalUrl).protocol}//${headers.host}`
  return method === 'GET' || method === 'HEAD'
}

/** Reports whether the request came to the port that serves the console. */
export const isOnConsolePort = ({ socket }: FastifyRequest, { port }: { port: number | undefined }): boolean =>
  port === undefined || socket.localPort === port
