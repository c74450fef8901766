// /ui/code: takes the code of a mail or a text message. The page that leads here carries `address` and `type`, one of
// AGAIN. A page to go on to is in the flow (`next`).
import { html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import { codeWords } from '../../words/pages/code.ts'
import { hasJustSignedIn } from './just-signed-in.ts'
import { arrivalOf, wasSentBefore } from './send-code.ts'
import { offers } from './ways.ts'

/** Request for a new code, by the type that POST /verify takes. */
const AGAIN: Record<string, { url: string; body?: object }> = {
  email: { url: '/otp', body: { create_user: false } },
  sms: { url: '/otp', body: { create_user: false } },
  recovery: { url: '/recover' },
  signup: { url: '/resend', body: { type: 'signup' } },
}

export const codePage: Page = {
  path: '/ui/code',
  async get(visit) {
    if (!isBegun(visit)) return visit.goTo('/ui/sign-in')
    // The first press of two has used the code, or has changed the session.
    const isAgain = visit.carried.error !== undefined || visit.isPost
    const isOver = isAgain && (await hasJustSignedIn(visit, visit.carried.address))
    return isOver ? visit.goTo('/ui/sign-in', { query: { prompt: '' } }) : showCode(visit)
  },
  async post(visit) {
    if (!isBegun(visit)) return visit.goTo('/ui/sign-in')
    if (visit.form.way === 'again') return sendAgain(visit)
    const { type } = visit.carried
    const answer = await visit.api<SessionBody>('POST', '/verify', {
      type,
      ...addressOf(visit),
      token: visit.form.code ?? '',
    })
    return answer.ok ? visit.signedIn(answer.body) : again(visit, { error: visit.explain(answer) })
  },
}

const isBegun = ({ carried: { address, type = '' } }: Visit) => address !== undefined && Object.hasOwn(AGAIN, type)

const addressOf = ({ carried: { address = '', type } }: Visit) =>
  type === 'sms' ? { phone: address } : { email: address }

async function sendAgain(visit: Visit) {
  const { type = '' } = visit.carried
  const { url, body } = AGAIN[type] as (typeof AGAIN)[string]
  const { query, challenge } = arrivalOf(visit)
  const answer = await visit.api('POST', `${url}${query}`, {
    ...body,
    ...addressOf(visit),
    ...(type !== 'sms' && challenge),
  })
  if (answer.ok) return again(visit, { news: visit.words(codeWords).sentAgain })
  return again(visit, { [wasSentBefore(answer) ? 'news' : 'problem']: visit.explain(answer) })
}

/** The page again, with one piece of news. */
const again = (visit: Visit, news: Record<string, string>) => {
  const { address = '', type = '' } = visit.carried
  return visit.goTo('/ui/code', { carry: { address, type, ...news } })
}

function showCode(visit: Visit) {
  const words = visit.words(codeWords)
  const { address = '', type, news, problem, error } = visit.carried
  // A sign-up and a recovery always have a code.
  const takesCode = type !== 'email' || offers(visit.deps.config, 'code')
  const mailed = type === 'signup' ? words.registered : takesCode ? words.mailed : words.linked
  const sentence = type === 'sms' ? words.texted : mailed
  return visit.show({
    title: takesCode ? words.title : words.linkTitle,
    ...(problem && { problem }),
    news,
    body: [
      html`<p>${fill(sentence, { address })}</p>\n`,
      takesCode &&
        visit.formOf({
          body: [
            field({
              ...{ name: 'code', label: words.code, error, required: true, autofocus: true, maxlength: 64 },
              ...{ autocomplete: 'one-time-code', inputmode: 'numeric' },
            }),
            button({ label: words.verify }),
          ],
        }),
      visit.formOf({ fields: { way: 'again' }, body: button({ label: words.again, kind: 'quiet' }) }),
      html`<p class="links"><a href="${visit.link('/ui/sign-in')}">${words.another}</a></p>\n`,
    ],
  })
}
