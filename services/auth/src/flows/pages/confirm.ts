// /ui/confirm: between the link of a mail and its effect, for links that lead to a page of ours. Scanners and
// strangers' links open addresses but press no buttons. Any browser may press it: the mail proves its owner.
import { html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import { WORDS } from '../../adapters/mail/built-in/words.ts'
import { ARRIVAL_PATH, CONFIRM_PATH } from '../../config/pages/page-paths.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import { readFlow } from '../../http/hosted/flow.ts'
import { hasFollowed, linkName, rememberLink } from '../../http/hosted/followed-link.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import { confirmWords } from '../../words/pages/confirm.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { NEW_PASSWORD_PATH } from './new-password.ts'

export const confirmPage: Page = {
  path: CONFIRM_PATH,
  async get(visit) {
    const { problem, link = '' } = visit.carried
    if (problem === undefined) return showConfirm(visit)
    const caller = await visit.caller()
    const isOver = caller && hasFollowed(visit.deps, visit.reply, { link, userId: caller.user.id })
    if (!isOver) return showFailure(visit, problem)
    // A second press, or the way back: the first press has signed in. A reader of the address is asked to go on.
    visit.flow.next = nextOf(visit, visit.query.type ?? '')
    return visit.goTo('/ui/sign-in', { query: { prompt: '' } })
  },
  async post(visit) {
    const { token = '', type = '' } = visit.form
    const answer = await visit.api<SessionBody | { msg: string }>('POST', '/verify', { type, token_hash: token })
    const link = linkName(token)
    if (!answer.ok)
      return visit.goTo(CONFIRM_PATH, { query: { type }, carry: { problem: visit.explain(answer), link } })
    if ('msg' in answer.body) return showOtherAddress(visit)
    rememberLink(visit.deps, visit.reply, { link, userId: answer.body.user.id })
    visit.flow.next = nextOf(visit, type)
    return visit.signedIn(answer.body)
  },
}

/** Types of links after which the user chooses a password. */
const CHOOSING = ['recovery', 'invite']

const nextOf = ({ flow }: Visit, type: string) => flow.next ?? (CHOOSING.includes(type) ? NEW_PASSWORD_PATH : undefined)

function showConfirm(visit: Visit) {
  // A form without a valid proof comes here too.
  const { token, type = 'email' } = visit.isPost ? visit.form : visit.query
  if (!token) return showFailure(visit, visit.explain({ code: 'otp_expired', message: '' }))
  unwrapArrival(visit)
  const { pages } = visit.words(WORDS)
  const { heading, text, button: label } = Object.hasOwn(pages, type) ? pages[type as keyof typeof pages] : pages.email
  return visit.show({
    title: heading,
    body: [
      html`<p>${fill(text, { site: visit.deps.config.pages.name })}</p>\n`,
      visit.formOf({ fields: { token, type }, body: button({ label }) }),
    ],
    scripts: ['button.js'],
    hidesAddress: true,
  })
}

/** Takes the flow out of the target of a link that was requested on our pages and leads back to them. */
function unwrapArrival({ flow, apiAddress }: Visit): void {
  const target = flow.redirect_to === undefined ? null : URL.parse(flow.redirect_to)
  if (!target || target.origin + target.pathname !== apiAddress(ARRIVAL_PATH)) return
  delete flow.redirect_to
  Object.assign(flow, readFlow(Object.fromEntries(target.searchParams)))
}

/** A change of address that both addresses have to agree to. */
function showOtherAddress(visit: Visit) {
  const words = visit.words(confirmWords)
  const { next } = visit.flow
  if (next !== undefined) return visit.goTo(next, { query: { next: '' }, carry: { news: words.otherAddress } })
  return visit.show({ title: words.agreed, body: html`<p>${words.otherAddress}</p>\n` })
}

function showFailure(visit: Visit, problem: string) {
  const { failed, again } = visit.words(frameWords)
  const body = html`<p class="links"><a href="${visit.link('/ui/sign-in')}">${again}</a></p>\n`
  return visit.show({ title: failed, problem, body, status: 400 })
}
