// /ui/arrive: where the link of a mail, or a provider, leads back to. The code it brings is exchanged by the browser
// that asked for it, and by no other: its cookie gives the verifier (PKCE).
import { html } from '@services/common/html'
import { ARRIVAL_PATH } from '../../config/pages/page-paths.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { codeWords } from '../../words/pages/code.ts'
import { frameWords } from '../../words/pages/frame.ts'

export const arrivalPage: Page = {
  path: ARRIVAL_PATH,
  hasEffect: true,
  async get(visit) {
    const { code, error_code: refusal } = visit.query
    // Any stranger can write the address: the text of the refusal is ours.
    if (code === undefined) {
      // The first of two addresses has agreed to a change; the page of the addresses waits for the other.
      const { next = '' } = visit.flow
      if (!refusal && visit.query.message !== undefined && next) return visit.goTo(next, { query: { next: '' } })
      const { failed } = visit.words(frameWords)
      return showFailure(visit, refusal ? visit.explain({ code: refusal, message: failed }) : failed)
    }
    for (const code_verifier of visit.verifiers()) {
      const answer = await visit.api<SessionBody>('POST', '/token?grant_type=pkce', { auth_code: code, code_verifier })
      if (answer.ok) return visit.signedIn(answer.body)
      if (answer.code !== 'bad_code_verifier') return showFailure(visit, visit.explain(answer))
    }
    return showFailure(visit, visit.words(codeWords).otherBrowser)
  },
}

function showFailure(visit: Visit, problem: string) {
  const { failed, again } = visit.words(frameWords)
  const body = html`<p class="links"><a href="${visit.link('/ui/sign-in')}">${again}</a></p>\n`
  return visit.show({ title: failed, problem, body, status: 400 })
}
