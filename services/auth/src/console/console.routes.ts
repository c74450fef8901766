// The console for administrators: one page, the files that it loads, and its session. Its scripts call the admin API
// and nothing else, so that a program can do the same. Pages: browser/; session: console-session.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { serveAssets } from '@services/common/pages/serve-assets'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { hasVerifiedFactor } from '../core/factors/assurance.ts'
import { endOneSession } from '../core/sessions/end-session.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { type BrowserCaller, HOSTED_COOKIE, openBrowserSessions } from '../http/hosted/browser-session.ts'
import { openConsoleAssets } from './assets.ts'
import { actorOf, type ConsoleSessions, isOnConsolePort, requireAdministrator } from './console-session.ts'
import { SHELL_HEADERS, shell } from './shell.ts'

const hidden = { schema: { hide: true } }

interface Parts {
  deps: Deps
  sessions: ConsoleSessions
}

export const consoleRoutes: FastifyPluginAsyncTypebox<Parts> = async (app, { deps, sessions }) => {
  const { config } = deps
  const assets = openConsoleAssets()
  const hosted = openBrowserSessions(deps, HOSTED_COOKIE)
  app.addHook('onRequest', async (request) => {
    if (!isOnConsolePort(request, config.console)) throw apiError('not_found')
  })
  serveAssets(app, '/console/assets/', assets)

  // Relative addresses: the console may stand below an unknown path.
  app.get('/console', hidden, async ({ url }, reply) => {
    const [path = '', query] = url.split(/\?(.*)/s, 2)
    if (path.endsWith('/')) return reply.redirect(`../console${query === undefined ? '' : `?${query}`}`)
    return reply.headers(SHELL_HEADERS).type('text/html; charset=utf-8').send(shell(assets, 'console/assets/'))
  })

  app.get('/console/session', hidden, async (request, reply) => {
    const admin = await sessions.adminOf(request, reply)
    if (!admin) throw apiError('no_authorization')
    const user = { id: admin.id, name: admin.email ?? admin.phone ?? admin.id }
    const capabilities = {
      trusted_devices: config.mfa.trustedDevices.ttlSeconds > 0,
      oauth_server: config.oauthServer.enabled,
    }
    const { audiences, adminRoles } = config.jwt
    return { user, audiences, admin_roles: adminRoles, capabilities, ...sessions.timesOf(request) }
  })

  app.get('/console/sign-in', hidden, async (request, reply) => {
    const caller = await hosted.find(request, reply)
    if (!caller || !sessions.isFresh(caller)) return toPage(reply, 'sign-in')
    const refusal = refusalOf(caller)
    if (refusal?.code === 'insufficient_aal' && hasVerifiedFactor(caller.user)) return toPage(reply, 'factor')
    // A further attempt signs in as another user.
    if (refusal?.code === 'not_admin' && isAgain(request)) return toPage(reply, 'sign-in')
    if (refusal !== undefined) {
      await sessions.recordRefusal(request, caller, refusal)
      return reply.redirect(`../console?refused=${refusal.code}`, 303)
    }
    sessions.begin(reply, { userId: caller.user.id, sessionId: caller.session.id })
    return reply.redirect('../console', 303)
  })

  app.post('/console/sign-out', hidden, async (request, reply) => {
    const caller = await sessions.callerOf(request, reply)
    await endOneSession(deps, request.log, actorOf(caller), caller.user, caller.session.id)
    sessions.end(reply)
    return reply.code(204).send()
  })

  function refusalOf(caller: BrowserCaller): ApiError | undefined {
    try {
      requireAdministrator(config, caller)
      return undefined
    } catch (error) {
      if (error instanceof ApiError) return error
      throw error
    }
  }
}

const isAgain = ({ query }: FastifyRequest): boolean => (query as { again?: unknown }).again !== undefined

/** Leads to a proof of now, and back: without `prompt` a browser that is signed in would come straight back. */
const toPage = (reply: FastifyReply, page: 'sign-in' | 'factor'): FastifyReply =>
  reply.redirect(`../ui/${page}?next=/console/sign-in&prompt=login`, 303)
