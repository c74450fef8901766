// GET /: the page to add clips, in the language of the browser. Tests: home-page.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Deps } from '../../../deps.ts'
import { findBrowserSession } from '../../../http/browser-session.ts'
import { languageOf } from '../../../words/language.ts'
import { sendPage } from '../page.routes.ts'
import { type Home, homePage } from './home-page.ts'

export const homeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { site, source, hasLibrary, uploadNeedsToken: needsToken } = deps.config

  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    const session = await sessionOf(request, reply)
    const page = homePage(site, { language: languageOf(request), source, needsToken, hasLibrary, session })
    reply.header('vary', hasLibrary ? 'Accept-Language, Cookie' : 'Accept-Language')
    return sendPage(reply, page, session ? 'private, no-store' : 'public, max-age=300')
  })

  async function sessionOf(request: FastifyRequest, reply: FastifyReply): Promise<Home['session']> {
    try {
      return await findBrowserSession(deps, request, reply, 'page')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return error.code === 'session_required' ? 'ended' : undefined
    }
  }
}
