// All of /ui, each page a route of its own: logs, metrics and traces name it. Below /ui refusals are pages too.
import type { FastifyPluginAsync } from 'fastify'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { PageAnswers } from '../../http/hosted/answer-pages.ts'

const MAX_FORM_BYTES = 64 * 1024

/** Paths of all pages. They are known before the pages are loaded. */
export const PAGE_PATHS = [
  ...['/ui/sign-in', '/ui/code', '/ui/factor', '/ui/provider', '/ui/arrive', '/ui/sign-out'],
  ...['/ui/consent', '/ui/device', '/ui/logout'],
  ...['/ui/sign-up', '/ui/recover', '/ui/new-password', '/ui/confirm', '/ui/passkey', '/ui/account'],
  ...['name', 'addresses', 'password', 'passkeys', 'factors', 'sessions', 'devices'].map(
    (name) => `/ui/account/${name}`,
  ),
  ...['identities', 'applications', 'notices', 'export', 'deletion', 'confirm'].map((name) => `/ui/account/${name}`),
]

/** Registers the pages. The first request loads them: a start without one takes 60 ms less (measured). */
export const hostedPages: FastifyPluginAsync<{ deps: Deps }> = async (app, { deps }) => {
  let loading: Promise<PageAnswers> | undefined
  const load = (): Promise<PageAnswers> => {
    loading ??= import('./all-pages.http.ts')
      .then(({ answerAllPages }) => answerAllPages(app, deps))
      .catch((error: unknown) => {
        // The next request tries again, such as after a lack of file handles.
        loading = undefined
        throw error
      })
    return loading
  }
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(body as string))),
  )
  app.setErrorHandler(async (error, request, reply) => (await load()).fail(error, request, reply))
  app.setNotFoundHandler(() => {
    throw apiError('not_found')
  })
  for (const path of PAGE_PATHS) {
    app.route({
      method: ['GET', 'POST'],
      url: path.replace('/ui', ''),
      schema: { hide: true },
      handler: async (request, reply) => (await load()).answer(path, request, reply),
    })
  }
}
