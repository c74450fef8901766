// /ui/consent: a user agrees to the request of an application, or denies it (contract/auth-oauth-server.md 5). Requests
// of `prompt=none` are answered without a page. The rules: core/oauth-server/authorizations.

import { ApiError } from '@services/common/errors'
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import { CONSENT_PATH } from '../../../config/pages/page-paths.ts'
import { hasVerifiedFactor, lacksFactor } from '../../../core/factors/assurance.ts'
import {
  answerAuthorization,
  answerSilently,
  viewAuthorization,
} from '../../../core/oauth-server/authorizations/answer-authorization.ts'
import { findPending, releaseAuthorization } from '../../../core/oauth-server/authorizations/authorizations.store.ts'
import { requireDemandedProof } from '../../../core/oauth-server/authorizations/demanded-proof.ts'
import { publicIdOf } from '../../../core/oauth-server/find-client.ts'
import type { OAuthAuthorization, OAuthClient } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import type { Page, Sent } from '../../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../../http/hosted/browser-session.ts'
import type { Visit } from '../../../http/hosted/visit.ts'
import { applicationName } from '../../../http/pages/send-to.ts'
import { fill } from '../../../words/language.ts'
import { consentWords } from '../../../words/pages/oauth/consent.ts'
import { scopeList, shownClient } from '../account/shown-application.ts'
import { nameOf } from '../sign-in.ts'
import { answerForm, resourceLine } from './answer-form.ts'

export const consentPage: Page = {
  path: CONSENT_PATH,
  // Its first user owns a request, and an earlier consent answers it.
  hasEffect: true,
  get: (visit) =>
    unlessGone(visit, async () => {
      const caller = await visit.caller()
      const { deps, request } = visit
      const silent = await answerSilently(deps, request.log, caller, idOf(visit))
      if (silent !== undefined) return visit.leave(silent)
      return onceProven(visit, caller, showRequest)
    }),
  post: (visit) =>
    unlessGone(visit, async () => {
      const caller = await visit.caller()
      if (!caller) return visit.toSignIn()
      if (visit.form.answer === undefined) return changeUser(visit, caller)
      return onceProven(visit, caller, answer)
    }),
}

const idOf = ({ flow }: Visit): string => flow.authorization_id ?? ''

const GONE = ['oauth_authorization_not_found', 'validation_failed']

/** Shows a page for a request that has ended, or that another user has seen. */
async function unlessGone(visit: Visit, handle: () => Promise<Sent>): Promise<Sent> {
  if (!visit.deps.config.oauthServer.enabled) throw apiError('not_found')
  try {
    return await handle()
  } catch (error) {
    if (!(error instanceof ApiError) || !GONE.includes(error.code)) throw error
    const { title, gone } = visit.words(consentWords)
    return visit.show({ title, problem: gone, body: '', status: 404 })
  }
}

/**
 * Leads to the sign-in or to the proof that the request demands, and back, before the request has an owner. It takes
 * the next step itself: to await a reply is to wait for its end, and gives nothing.
 */
async function onceProven(
  visit: Visit,
  caller: BrowserCaller | undefined,
  goOn: (visit: Visit, caller: BrowserCaller) => Promise<Sent>,
): Promise<Sent> {
  const { deps } = visit
  const request = await findPending(deps.db, idOf(visit), deps.now())
  const next = { next: CONSENT_PATH }
  if (!caller) {
    if (!request) throw apiError('oauth_authorization_not_found')
    return visit.goTo('/ui/sign-in', { query: next, carry: { typed: request.login_hint ?? '' } })
  }
  if (lacksFactor(caller.user, caller.session.aal)) return visit.goTo('/ui/factor', { query: next })
  const demand = request && demandOf(visit, request, caller)
  if (demand === 'reauthentication_needed') {
    const carry = { typed: nameOf(caller.user) ?? '', problem: visit.words(consentWords).proof }
    return visit.goTo('/ui/sign-in', { query: { ...next, prompt: 'login' }, carry })
  }
  // No page proves more than a second factor.
  if (demand !== 'insufficient_aal' || caller.session.aal !== 'aal1') return goOn(visit, caller)
  return hasVerifiedFactor(caller.user) ? visit.goTo('/ui/factor', { query: next }) : visit.toSetUp(CONSENT_PATH)
}

function demandOf(visit: Visit, request: OAuthAuthorization, { session }: BrowserCaller): string | undefined {
  try {
    requireDemandedProof(request, session, visit.deps.now())
    return undefined
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
}

async function showRequest(visit: Visit, caller: BrowserCaller): Promise<Sent> {
  const viewed = await viewAuthorization(visit.deps, visit.request.log, caller, idOf(visit))
  return 'redirectUrl' in viewed ? visit.leave(viewed.redirectUrl) : showConsent(visit, caller, viewed)
}

async function showConsent(
  visit: Visit,
  { user }: BrowserCaller,
  { request, client }: { request: OAuthAuthorization; client: OAuthClient },
) {
  const words = visit.words(consentWords)
  const name = nameOf(user)
  const asks = fill(name === undefined ? words.asksGuest : words.asks, {
    client: shownClient({ id: publicIdOf(client), name: client.client_name }),
    name: name ?? '',
  })
  const host = applicationName(visit.deps.config, request.redirect_uri)
  return visit.show({
    title: words.title,
    body: [
      html`<p>${asks}</p>\n`,
      await scopeList(visit, request.scopes),
      resourceLine(visit, request.resources),
      html`<p class="hint">${fill(words.leads, { host })}</p>\n`,
      answerForm(visit),
      visit.formOf({ body: button({ label: words.another, kind: 'quiet' }) }),
    ],
  })
}

/** The second of two presses finds the answer of the first. */
async function answer(visit: Visit, caller: BrowserCaller): Promise<Sent> {
  const action = visit.form.answer === 'allow' ? 'approve' : 'deny'
  try {
    return visit.leave(await answerAuthorization(visit.deps, visit.request.log, caller, idOf(visit), action))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'validation_failed') return showRequest(visit, caller)
    throw error
  }
}

/** Gives the request up to the user who signs in next. */
async function changeUser(visit: Visit, { user }: BrowserCaller): Promise<Sent> {
  await releaseAuthorization(visit.deps.db, { id: idOf(visit), userId: user.id })
  return visit.goTo('/ui/sign-in', { query: { next: CONSENT_PATH, prompt: 'login' } })
}
