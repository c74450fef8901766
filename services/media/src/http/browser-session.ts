// Session of a browser: a cookie that stands for a token, with its scopes and limits, and ends with it
// (contract/media-library.md 1). The rule: it counts for requests of our own pages alone, so that no other site can
// use it. Tests: ../flows/pages/session/session.test.ts.
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { clientName } from '@services/common/pages/client-name'
import { removeCookie, setCookie, valuesOf } from '@services/common/pages/cookies'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { endSessions, findSessions, insertSession, renewSession } from '../core/tokens/browser-sessions.store.ts'
import type { ApiToken } from '../core/tokens/tokens.store.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'

/** Purpose of a request: a `change`, a `read` by a script, or a `page`, which may be opened from the address bar. */
export type Purpose = 'change' | 'read' | 'page'

export interface BrowserSession {
  hash: Buffer
  token: ApiToken
  /** Proof for forms without script, which send no header: another site cannot know it. */
  formToken: string
}

type SessionDeps = Pick<Deps, 'config' | 'db' | 'now'>

const DAY_SECONDS = 86_400
const LIFETIME_SECONDS = 30 * DAY_SECONDS

/** Header of our scripts. No page of another origin can send it: no answer allows credentials there. */
const OWN_HEADER = 'x-media'

/** Starts a session for a token, in place of the one that the browser had. */
export async function beginSession(
  { config, db, now }: SessionDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { id }: Pick<ApiToken, 'id'>,
): Promise<void> {
  const value = randomBytes(32).toString('base64url')
  const at = now()
  await endSessions(db, valuesOf(request, cookieOf(config).name).map(hashOf))
  await insertSession(db, {
    ...{ hash: hashOf(value), token_id: id, client_name: clientName(request.headers['user-agent'] ?? null) ?? null },
    ...{ created_at: at, last_used_at: at, expires_at: expiryAt(at) },
  })
  give(reply, config, value)
}

/**
 * Finds the session of a request; undefined without a cookie. Throws session_required for one that has ended, and
 * wrong_origin for a request that none of our pages sent.
 */
export async function findBrowserSession(
  deps: SessionDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  purpose: Purpose,
): Promise<BrowserSession | undefined> {
  const { config, db, now } = deps
  const values = config.hasLibrary ? valuesOf(request, cookieOf(config).name) : []
  if (values.length === 0) return undefined
  requireOwnPage(config, request, purpose)
  const sessions = await findSessions(db, values.map(hashOf), now())
  const sessionOf = (value: string) => sessions.find(({ hash }) => hash.equals(hashOf(value)))
  // The browser's order: the most specific cookie first.
  const value = values.find(sessionOf)
  const found = value && sessionOf(value)
  if (!found) {
    forget(reply, config)
    throw apiError('session_required')
  }
  const { hash, lastUsedAt, token } = found
  const at = now()
  const isStale = at.getTime() - lastUsedAt.getTime() >= DAY_SECONDS * 1000
  if (isStale && (await renewSession(db, hash, at, expiryAt(at)))) give(reply, config, value)
  return { hash, token, formToken: formTokenOf(value) }
}

/** Reports whether a browser sent the cookie of a session, of whatever worth. */
export const hasSessionCookie = (config: Pick<Config, 'hasLibrary' | 'site'>, request: FastifyRequest): boolean =>
  request.headers.cookie !== undefined && config.hasLibrary && valuesOf(request, cookieOf(config).name).length > 0

/** Whether a script of our own pages sent the request, by its header. */
export const isOwnScript = ({ headers }: FastifyRequest): boolean => headers[OWN_HEADER] === '1'

/** Throws wrong_origin unless a script of our own pages sent the request. */
export function requireOwnScript(request: FastifyRequest): void {
  if (!isOwnScript(request)) throw apiError('wrong_origin')
}

/** Whether a form of a page of this session was sent. */
export function isOwnForm({ formToken }: Pick<BrowserSession, 'formToken'>, given: string): boolean {
  const [own, sent] = [Buffer.from(formToken), Buffer.from(given)]
  return own.length === sent.length && timingSafeEqual(own, sent)
}

/** Ends a session, here and in the browser. */
export async function endBrowserSession(
  { config, db }: SessionDeps,
  reply: FastifyReply,
  { hash }: Pick<BrowserSession, 'hash'>,
): Promise<void> {
  await endSessions(db, [hash])
  forget(reply, config)
}

/**
 * Throws wrong_origin unless our own pages, or for a page the address bar, sent the request. Browsers name the sender
 * in `Sec-Fetch-Site`; older ones, and all on plain http outside of loopback, name it in `Origin`, with changes alone.
 */
export function requireOwnPage(
  { site }: Pick<Config, 'site'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
  purpose: Purpose,
): void {
  const sender = headers['sec-fetch-site']
  const isOwn =
    sender !== undefined
      ? sender === 'same-origin' || (purpose === 'page' && sender === 'none')
      : headers.origin === undefined
        ? purpose !== 'change'
        : headers.origin === new URL(site.baseUrl).origin
  if (!isOwn) throw apiError('wrong_origin')
}

const hashOf = (value: string): Buffer => createHash('sha256').update(value).digest()

/** Returns a text that only a page of this session has: the value itself stays out of documents. */
const formTokenOf = (value: string): string => createHash('sha256').update(`form ${value}`).digest('base64url')

const expiryAt = (now: Date): Date => new Date(now.getTime() + LIFETIME_SECONDS * 1000)

function cookieOf({ site }: Pick<Config, 'site'>) {
  const isSecure = site.baseUrl.toLowerCase().startsWith('https:')
  // No other host of the domain can plant a cookie of this prefix.
  return { name: isSecure ? '__Host-media' : 'media', isSecure }
}

const give = (reply: FastifyReply, config: Pick<Config, 'site'>, value: string): void =>
  setCookie(reply, { ...cookieOf(config), value, maxAge: LIFETIME_SECONDS, sameSite: 'Strict' })

function forget(reply: FastifyReply, config: Pick<Config, 'site'>): void {
  const { name, isSecure } = cookieOf(config)
  removeCookie(reply, name, isSecure)
}
