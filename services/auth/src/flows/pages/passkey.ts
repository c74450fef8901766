// /ui/passkey: takes the passkey of a sign-in, and offers a new one after a sign-in by other means. The only pages that
// need a script (http/pages/assets/passkey.js); without one the offer leads on.
import { type Html, html } from '@services/common/html'
import { button, hiddenFields } from '@services/common/pages/forms'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../http/hosted/browser-session.ts'
import { credentialIn, hasPasskey, PASSKEY_PATH } from '../../http/hosted/passkey-offer.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { passkeyWords } from '../../words/pages/passkey.ts'
import { goOn } from './go-on.ts'

export const PASSKEY_SCRIPT = 'passkey.js'

export const passkeyPage: Page = {
  path: PASSKEY_PATH,
  async get(visit) {
    const caller = await visit.caller()
    if (!caller) return visit.goTo('/ui/sign-in')
    const { made, problem } = visit.carried
    return (await hasPasskey(visit.deps, caller.user.id, made))
      ? visit.goTo('/ui/sign-in')
      : showOffer(visit, caller, problem)
  },
  async post(visit) {
    const { way, challenge_id } = visit.form
    const { credential, id } = credentialIn(visit.form.credential)
    const answer = { challenge_id, credential }
    if (way === 'sign-in') {
      const session = await visit.api<SessionBody>('POST', '/passkeys/authentication/verify', answer)
      if (session.ok) return visit.signedIn(session.body)
      return visit.goTo('/ui/sign-in', { carry: { problem: visit.explain(session) } })
    }
    const caller = await visit.caller()
    if (!caller) return visit.toSignIn()
    if (way === 'later') return goOn(visit, caller, visit.flow.next)
    const made = await visit.api('POST', '/passkeys/registration/verify', answer, { as: caller })
    if (made.ok) return goOn(visit, caller, visit.flow.next)
    return visit.goTo(PASSKEY_PATH, { carry: { problem: visit.explain(made), ...(id !== undefined && { made: id }) } })
  },
}

/** Form of the sign-in page; the browser knows whose passkey it is. */
export function passkeySignIn(visit: Visit): Html {
  const words = visit.words(passkeyWords)
  return visit.formOf({
    action: PASSKEY_PATH,
    fields: { way: 'sign-in' },
    body: ceremony({
      kind: 'get',
      label: words.signIn,
      problem: words.failed,
      options: visit.link('/passkeys/authentication/options'),
    }),
  })
}

async function showOffer(visit: Visit, caller: BrowserCaller, problem?: string) {
  const challenge = await visit.api('POST', '/passkeys/registration/options', {}, { as: caller })
  // Nothing to offer. Any site can link here: only a press leads on to an application.
  if (!challenge.ok) return visit.goTo('/ui/sign-in')
  const words = visit.words(passkeyWords)
  return visit.show({
    title: words.offerTitle,
    problem,
    body: [
      html`<p>${words.offer}</p>\n`,
      visit.formOf({
        fields: { way: 'register' },
        body: ceremony({
          kind: 'create',
          label: words.add,
          problem: words.failed,
          challenge: JSON.stringify(challenge.body),
        }),
      }),
      visit.formOf({ fields: { way: 'later' }, body: button({ label: words.later, kind: 'quiet' }) }),
    ],
    scripts: [PASSKEY_SCRIPT],
  })
}

interface Ceremony {
  kind: 'get' | 'create'
  label: string
  /** Sentence for a ceremony that the user or the browser ended. */
  problem: string
  /** Address of the challenge. */
  options?: string
  /** Challenge as JSON. */
  challenge?: string
  /** Sentence that a browser without the script shows. */
  needsScript?: string
}

export const ceremony = ({ kind, label, problem, options, challenge, needsScript }: Ceremony): Html =>
  html`${hiddenFields({ challenge_id: '', credential: '' })}<p hidden class="notice problem" role="alert">${problem}</p>
${needsScript && html`<p class="needs-script">${needsScript}</p>\n`}<button type="submit" data-passkey="${kind}" data-options="${options ?? ''}" data-challenge="${challenge ?? ''}" hidden>${label}</button>
`
