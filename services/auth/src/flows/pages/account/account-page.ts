// Pages below /ui/account, and their shared parts: the signed-in visitor, the frame, the answer to a refusal. A page
// that needs a fresh proof leads to it and back; none opens before the second factor is proven. A change is answered by
// 303 to the page of the state after it. So a second press, the back button and another tab show the present. Tests:
// account.test.ts, proofs.test.ts.
import { type Html, type HtmlValue, html } from '@services/common/html'
import { ACCOUNT_PATH } from '../../../config/pages/page-paths.ts'
import type { Config } from '../../../config.ts'
import { hasVerifiedFactor, lacksFactor } from '../../../core/factors/assurance.ts'
import type { Answer, Page } from '../../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../../http/hosted/browser-session.ts'
import type { ApiAnswer, ApiCall } from '../../../http/hosted/call-api.ts'
import type { ShownVisit, Visit } from '../../../http/hosted/visit.ts'
import { inEachLanguage } from '../../../words/language.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'

export type Refused = Extract<ApiAnswer, { ok: false }>

export const ACCOUNT = ACCOUNT_PATH

/** A visit of the signed-in user. */
export interface Own {
  visit: Visit
  caller: BrowserCaller
  /** Calls an endpoint as the user. */
  api<Body>(method: ApiCall['method'], url: string, body?: Record<string, unknown>): Promise<ApiAnswer<Body>>
}

interface AccountPage {
  /** Last part of the path. */
  name: string
  /** Where it is false the page leads to the account. */
  isEnabled?(config: Config): boolean
  get(own: Own, problem?: string): Answer
  post?(own: Own): Answer
}

export function accountPage({ name, isEnabled, get, post }: AccountPage): Page {
  const path = name === '' ? ACCOUNT : `${ACCOUNT}/${name}`
  const withOwn = (handle: (own: Own) => Answer) => async (visit: Visit) => {
    const caller = await visit.caller()
    if (!caller) return signedOut(visit)
    if (lacksFactor(caller.user, caller.session.aal)) return visit.goTo('/ui/factor', { query: { next: path } })
    if (isEnabled && !isEnabled(visit.deps.config)) return visit.goTo(ACCOUNT)
    return handle({ visit, caller, api: (method, url, body) => visit.api(method, url, body, { as: caller }) })
  }
  return { path, get: withOwn((own) => get(own)), ...(post && { post: withOwn(post) }) }
}

/** Leads to the sign-in and back. An account that is gone is not asked for. */
const signedOut = async (visit: Visit) =>
  (await visit.isDeleted()) ? visit.goTo('/ui/sign-in', { carry: { news: 'deleted' } }) : visit.toSignIn()

/** Shows a page with a way back to the account; `news` that a change left is above it. */
export function showAccount({ visit }: Own, { body, ...page }: ShownVisit): Answer {
  const back = html`<p class="links"><a href="${visit.link(ACCOUNT)}">${visit.words(accountWords).back}</a></p>\n`
  return visit.show({ news: page.problem ? undefined : visit.carried.news, ...page, body: [body, back] })
}

/** Leads to the page of the state after a change. */
export const done = ({ visit }: Own, news?: string): Answer =>
  visit.goTo(visit.path, news === undefined ? {} : { carry: { news } })

/** Refusals of a session that ended elsewhere. */
const SIGNED_OUT = ['session_not_found', 'user_not_found', 'user_banned', 'bad_jwt']

/**
 * Leads to the proof that a refusal demands, and back; shows the page again for any other reason. `gone` is the news of
 * a removal that is done already, by the first press of two or in another tab.
 */
export function refused(own: Own, refusal: Refused, again: (problem: string) => Answer, gone?: string): Answer {
  const { visit, caller } = own
  if (refusal.status === 404 && visit.isPost) return done(own, gone)
  if (SIGNED_OUT.includes(refusal.code)) return visit.toSignIn()
  if (refusal.code === 'reauthentication_needed') {
    return visit.goTo(`${ACCOUNT}/confirm`, { query: { next: visit.path } })
  }
  if (refusal.code === 'insufficient_aal') {
    if (hasVerifiedFactor(caller.user)) return visit.goTo('/ui/factor', { query: { next: visit.path } })
    if (visit.deps.config.mfa.totp.enroll) return visit.toSetUp(visit.path)
  }
  return again(visit.explain(refusal))
}

/** Shows a page whose content the service refuses: an empty list would be untrue. */
export const unavailable = (own: Own, title: string, refusal: Refused): Answer =>
  refused(own, refusal, (problem) => showAccount(own, { title, body: '', problem }))

/** Time in the reader's language. Pages know no time zone, so it is UTC. */
export function shownTime(visit: Visit, time: string | null | undefined): HtmlValue {
  if (!time) return undefined
  const locale = visit.words(inEachLanguage({ en: 'en-GB', de: 'de-DE' }))
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
  return html`<time datetime="${time}">${format.format(new Date(time))} UTC</time>`
}

/** Button of a row; `about` names the row to screen readers. */
export const rowButton = (label: string, about: string, kind: 'quiet' | 'danger' = 'danger'): Html =>
  html`<button type="submit" class="${kind}">${label}<span class="unseen"> ${about}</span></button>\n`
