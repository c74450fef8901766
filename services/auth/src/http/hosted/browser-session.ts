// Session of a browser at our own pages. The cookie names a row of `sessions`, which is the truth: one that ended
// elsewhere is signed out here. Calls as the user get an access token of a minute, which never leaves the process.
//
// Call                                     | use
// openBrowserSessions(deps, { name: … })   | once for each room of pages, under its own name
// begin(reply, { userId, sessionId })      | after a sign-in
// find(request, reply)                     | the caller; undefined when signed out, ended or banned
// tokenOf(caller)                          | the access token for calls in this process
// end(reply)                               | after a sign-out
import { createHmac, timingSafeEqual } from 'node:crypto'
import { removeCookie, setCookie, valuesOf } from '@services/common/pages/cookies'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { deriveKey } from '../../core/keys/derive-key.ts'
import { accessTokenClaims, BY_PAGES, type TokenSession } from '../../core/sessions/access-token.ts'
import { whyEnded } from '../../core/sessions/session-limits.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import type { User } from '../../core/users/users.store.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'

export interface BrowserCookie {
  /** Without `__Host-`, which it gets where browsers use https: no other host of the domain can plant one. */
  name: string
  sameSite: 'Lax' | 'Strict'
  /** Time from the sign-in. */
  lifetimeSeconds: number
  /** Time from the last request; absent: the lifetime alone counts. */
  idleSeconds?: number
}

/** Cookie of the hosted pages. The row in `sessions` ends a session; browsers keep cookies for 400 days at most. */
export const HOSTED_COOKIE: BrowserCookie = { name: 'auth-session', sameSite: 'Lax', lifetimeSeconds: 400 * 86_400 }

/** Row that a cookie names. */
export interface NamedSession {
  userId: string
  sessionId: string
}

export interface BrowserCaller {
  user: User
  session: TokenSession
}

/** Content of a cookie; times in Unix seconds. */
interface Visit extends NamedSession {
  begunAt: number
  seenAt: number
}

/** Time after which the cookie of an idle limit is renewed. */
const RENEWED_AFTER_SECONDS = 60

const TOKEN_SECONDS = 60

type SessionsDeps = Pick<Deps, 'config' | 'findCaller' | 'keys' | 'newId' | 'now'>

export function openBrowserSessions(deps: SessionsDeps, cookie: BrowserCookie) {
  const { config, now } = deps
  const { sameSite, lifetimeSeconds, idleSeconds } = cookie
  const isSecure = config.server.externalUrl.startsWith('https:')
  const name = isSecure ? `__Host-${cookie.name}` : cookie.name
  const key = deriveKey(config.jwt.secret, 'browser-session')
  const seconds = () => Math.floor(now().getTime() / 1000)
  // The name is part of it: no cookie counts in another room, or over plain http.
  const macOf = (content: string) => createHmac('sha256', key).update(`${name} ${content}`).digest()

  const set = (reply: FastifyReply, { userId, sessionId, begunAt, seenAt }: Visit) => {
    const content = [userId, sessionId, begunAt.toString(36), seenAt.toString(36)].join('.')
    const value = `${content}.${macOf(content).toString('base64url')}`
    setCookie(reply, { name, value, maxAge: begunAt + lifetimeSeconds - seconds(), isSecure, sameSite })
  }

  const read = (value: string): Visit | undefined => {
    const parts = value.split('.')
    const [userId = '', sessionId = '', begun = '', seen = '', mac = ''] = parts
    const [given, expected] = [Buffer.from(mac, 'base64url'), macOf(parts.slice(0, 4).join('.'))]
    if (parts.length !== 5 || given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
    if (!UUID.test(userId) || !UUID.test(sessionId)) return undefined
    const [begunAt, seenAt] = [Number.parseInt(begun, 36), Number.parseInt(seen, 36)]
    const isOver =
      seconds() >= begunAt + lifetimeSeconds || (idleSeconds !== undefined && seconds() >= seenAt + idleSeconds)
    return isOver ? undefined : { userId, sessionId, begunAt, seenAt }
  }

  const visitOf = (request: FastifyRequest): Visit | undefined =>
    valuesOf(request, name)
      .map(read)
      .find((visit) => visit !== undefined)

  return {
    /** Returns the session that the cookie names, which may have ended; no statement. */
    named: (request: FastifyRequest): NamedSession | undefined => visitOf(request),

    /** Returns the time until the cookie ends in any case. */
    secondsLeft(request: FastifyRequest): number {
      const visit = visitOf(request)
      return visit ? visit.begunAt + lifetimeSeconds - seconds() : 0
    },

    begin(reply: FastifyReply, session: NamedSession): void {
      set(reply, { ...session, begunAt: seconds(), seenAt: seconds() })
    },

    /** Finds the signed-in user; renews the cookie where an idle limit holds. */
    async find(request: FastifyRequest, reply: FastifyReply): Promise<BrowserCaller | undefined> {
      const visit = visitOf(request)
      const found = visit && (await deps.findCaller(visit))
      if (!visit || !found?.session || whyEnded(found.session, config.sessions, now()) || isBanned(found.user, now())) {
        return undefined
      }
      if (idleSeconds !== undefined && seconds() >= visit.seenAt + RENEWED_AFTER_SECONDS) {
        set(reply, { ...visit, seenAt: seconds() })
      }
      return { user: found.user, session: found.session }
    },

    /** Whether the user of the named session is deleted. */
    async isUserGone(request: FastifyRequest): Promise<boolean> {
      const visit = visitOf(request)
      return visit !== undefined && (await deps.findCaller(visit)) === undefined
    },

    end(reply: FastifyReply): void {
      removeCookie(reply, name, isSecure)
    },

    /** Signs an access token of a minute for calls in this process. No hook is asked. */
    tokenOf({ user, session }: BrowserCaller): Promise<string> {
      const jwt = { ...config.jwt, lifetimeSeconds: TOKEN_SECONDS }
      return deps.keys.sign({ ...accessTokenClaims({ ...deps, config: { jwt } }, user, session), [BY_PAGES]: true })
    },
  }
}
