// /ui/sign-out: ends the session of this browser.
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import { framesOf, signOutApplications } from '../../core/oauth-server/logout/sign-out-applications.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../http/hosted/browser-session.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import type { Refusal } from '../../words/pages/errors.ts'
import { signInWords } from '../../words/pages/sign-in.ts'
import { nameOf } from './sign-in.ts'
import { leaveSignedOut } from './signed-out.ts'

/** Statuses for a session that has ended meanwhile; after any other the application is still signed in. */
const ENDED = [401, 403, 404]

export const signOutPage: Page = {
  path: '/ui/sign-out',
  async get(visit) {
    const caller = await visit.caller()
    if (!caller) return visit.goTo('/ui/sign-in', { carry: { news: 'signed-out' } })
    const words = visit.words(signInWords)
    const name = nameOf(caller.user)
    return visit.show({
      ...{ title: words.signOut, problem: visit.carried.problem },
      body: [
        html`<p>${name === undefined ? words.asGuest : fill(words.signOutText, { name })}</p>\n`,
        visit.formOf({ body: button({ label: words.signOut }) }),
      ],
    })
  },
  async post(visit) {
    const { refusal, frames = [] } = await endHere(visit, await visit.caller())
    if (refusal) return visit.retry({ problem: visit.explain(refusal) })
    return leaveSignedOut(visit, {
      frames,
      location: visit.flow.redirect_to === undefined ? undefined : visit.target(),
    })
  },
}

/**
 * Ends the session of this browser, and those of applications that belong to it. Returns addresses of frames that
 * notify these, or a refusal, after which the session goes on.
 */
export async function endHere(
  visit: Visit,
  caller: BrowserCaller | undefined,
): Promise<{ refusal?: Refusal; frames?: string[] }> {
  if (!caller) {
    visit.signedOut()
    return {}
  }
  const frames = await framesOf(visit.deps, caller)
  // Before the session that names them: an end that breaks off between the two is repeated whole.
  await signOutApplications(visit.deps, visit.request.log, caller)
  const answer = await visit.api('POST', '/logout?scope=local', undefined, { as: caller })
  if (!answer.ok && !ENDED.includes(answer.status)) return { refusal: answer }
  visit.signedOut()
  return { frames }
}
