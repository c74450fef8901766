// /ui/logout: ends the session of this browser at the request of an application (POST /oauth/logout). It asks, unless
// an id_token shows that the application's user is the one who is signed in here.
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import { LOGOUT_PATH } from '../../../config/pages/page-paths.ts'
import { publicIdOf } from '../../../core/oauth-server/find-client.ts'
import { type LogoutRequest, readLogout } from '../../../core/oauth-server/logout/read-logout.ts'
import { frameOf, MAX_FRAMES } from '../../../core/oauth-server/logout/sign-out-applications.ts'
import { apiError } from '../../../errors.ts'
import type { Page, Sent } from '../../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../../http/hosted/browser-session.ts'
import type { Visit } from '../../../http/hosted/visit.ts'
import { applicationName } from '../../../http/pages/send-to.ts'
import { fill } from '../../../words/language.ts'
import { logoutWords } from '../../../words/pages/oauth/logout.ts'
import { signInWords } from '../../../words/pages/sign-in.ts'
import { shownClient } from '../account/shown-application.ts'
import { nameOf } from '../sign-in.ts'
import { endHere } from '../sign-out.ts'
import { leaveSignedOut } from '../signed-out.ts'

export const logoutPage: Page = {
  path: LOGOUT_PATH,
  hasEffect: true,
  async get(visit) {
    const request = await read(visit)
    const caller = await visit.caller()
    // A form without a valid proof comes here too, and ends nothing.
    const isProven = !visit.isPost && caller !== undefined && request.proven?.userId === caller.user.id
    if (caller && !isProven) return ask(visit, caller, request)
    const { client, proven } = request
    // Its own session has ended before (POST /oauth/logout).
    const own = isProven && client && proven ? frameOf(visit.deps, client, proven.sessionId) : undefined
    const frames = own === undefined ? [] : [own]
    // An attacker can register an application, and sign in there to get an id_token for a link.
    return end(visit, caller, { ...request, frames, isAgreed: isProven || client?.registration_type === 'manual' })
  },
  async post(visit) {
    return end(visit, await visit.caller(), { ...(await read(visit)), frames: [], isAgreed: true })
  },
}

function read(visit: Visit): Promise<LogoutRequest> {
  if (!visit.deps.config.oauthServer.enabled) throw apiError('not_found')
  return readLogout(visit.deps, visit.isPost ? visit.form : visit.query)
}

type Ending = LogoutRequest & { isAgreed: boolean; frames: string[] }

async function end(visit: Visit, caller: BrowserCaller | undefined, request: Ending): Promise<Sent> {
  const { refusal, frames = [] } = await endHere(visit, caller)
  if (refusal) return visit.show({ title: visit.words(signInWords).signOut, problem: visit.explain(refusal), body: '' })
  return leaveSignedOut(visit, {
    ...request,
    frames: [...new Set([...request.frames, ...frames])].slice(0, MAX_FRAMES),
  })
}

function ask(visit: Visit, { user }: BrowserCaller, { client, location }: LogoutRequest) {
  const words = { ...visit.words(signInWords), ...visit.words(logoutWords) }
  const name = nameOf(user)
  const application = client ? shownClient({ id: publicIdOf(client), name: client.client_name }) : words.somebody
  const { post_logout_redirect_uri, state } = visit.isPost ? visit.form : visit.query
  const fields = { client_id: client && publicIdOf(client), post_logout_redirect_uri, state }
  return visit.show({
    title: words.signOut,
    body: [
      html`<p>${fill(name === undefined ? words.asksGuest : words.asks, { client: application, name: name ?? '' })}</p>\n`,
      location !== undefined &&
        html`<p>${fill(words.next, { name: applicationName(visit.deps.config, location) })}</p>\n`,
      visit.formOf({ fields, body: button({ label: words.signOut }) }),
    ],
  })
}
