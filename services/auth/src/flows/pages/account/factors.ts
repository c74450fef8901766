// /ui/account/factors: the second factor. An authenticator app is added by its QR code, or by the secret as text;
// recovery codes are shown once.
import { type Html, html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { table } from '@services/common/pages/table'
import type { UserBody } from '../../../core/users/user-shape.ts'
import type { ApiAnswer } from '../../../http/hosted/call-api.ts'
import { fill } from '../../../words/language.ts'
import { factorWords } from '../../../words/pages/account/factors.ts'
import { accountWords } from '../../../words/pages/account/overview.ts'
import { goOn } from '../go-on.ts'
import {
  accountPage,
  done,
  type Own,
  type Refused,
  refused,
  rowButton,
  showAccount,
  shownTime,
  unavailable,
} from './account-page.ts'

interface Begun {
  id: string
  secret: string
  qrCode?: string
}

export const factorsPage = accountPage({
  name: 'factors',
  get: (own) => showFactors(own),
  post(own) {
    const { way } = own.visit.form
    if (way === 'begin') return begin(own)
    if (way === 'prove') return prove(own)
    if (way === 'on') return goOn(own.visit, own.caller, own.visit.flow.next)
    return way === 'codes' ? makeCodes(own) : remove(own)
  },
})

async function begin(own: Own) {
  const { visit } = own
  const friendly_name = visit.form.name?.trim() || undefined
  const enroll = () =>
    own.api<{ id: string; totp: { qr_code: string; secret: string } }>('POST', '/factors', {
      ...{ factor_type: 'totp', ...(friendly_name && { friendly_name }) },
    })
  let begun = await enroll()
  if (!begun.ok && IN_THE_WAY.includes(begun.code)) begun = (await removeUnproven(own)) ?? (await enroll())
  if (!begun.ok) return refused(own, begun, (problem) => showFactors(own, problem))
  const { id, totp } = begun.body
  return showNew(own, { id, secret: totp.secret, qrCode: totp.qr_code })
}

/** Refusals that an app may cause which was begun before and never proven, such as by a second press. */
const IN_THE_WAY = ['mfa_factor_name_conflict', 'too_many_enrolled_mfa_factors']

/** Removes apps that were begun and never proven; returns the refusal of one. */
async function removeUnproven(own: Own): Promise<Refused | undefined> {
  const answer = await own.api<UserBody>('GET', '/user')
  if (!answer.ok) return answer
  const unproven = answer.body.factors?.filter(
    ({ status, factor_type: type }) => status !== 'verified' && type === 'totp',
  )
  for (const { id } of unproven ?? []) {
    const removed = await own.api('DELETE', `/factors/${id}`, {})
    // Another press of two has removed it.
    if (!removed.ok && removed.status !== 404) return removed
  }
  return undefined
}

/** The first code of a new app. */
async function prove(own: Own) {
  const { factor_id: id = '', secret = '', code = '' } = own.visit.form
  const again = (problem: string) => showNew(own, { id, secret }, problem)
  const url = `/factors/${encodeURIComponent(id)}`
  const challenge = await own.api<{ id: string }>('POST', `${url}/challenge`, {})
  if (!challenge.ok) return refused(own, challenge, again)
  const body = { challenge_id: challenge.body.id, code: code.trim() }
  const proven = await own.api<{ recovery_codes?: string[] }>('POST', `${url}/verify`, body)
  if (!proven.ok) {
    // Proven by the first press of two, which used the code up.
    const user = await own.api<UserBody>('GET', '/user')
    const isProven = user.ok && user.body.factors?.some((factor) => factor.id === id && factor.status === 'verified')
    return isProven ? added(own) : refused(own, proven, again)
  }
  const { recovery_codes: codes } = proven.body
  return codes ? showCodes(own, codes) : added(own)
}

const added = ({ visit }: Own) =>
  visit.goTo(visit.path, { carry: { news: visit.words(factorWords).added, setUp: visit.carried.setUp ?? '' } })

/** Whether a demand has led here: with a factor the user goes on. */
const isSetUp = ({ visit }: Own) => visit.carried.setUp === 'yes'

const onwards = ({ visit }: Own, label: string): Html =>
  visit.formOf({ fields: { way: 'on' }, body: button({ label }) })

async function makeCodes(own: Own) {
  const { had } = own.visit.form
  const make = (path: string) => own.api<{ codes: string[] }>('POST', `/factors/recovery-codes${path}`, {})
  let made = await make(had ? '/regenerate' : '')
  // The browser shows the answer to the second press of two alone.
  if (!made.ok && made.code === 'mfa_verified_factor_exists') made = await make('/regenerate')
  return made.ok ? showCodes(own, made.body.codes) : refused(own, made, (problem) => showFactors(own, problem))
}

async function remove(own: Own) {
  const { factor_id: id = '' } = own.visit.form
  const removed = await own.api('DELETE', `/factors/${encodeURIComponent(id)}`, {})
  const news = own.visit.words(accountWords).removed
  return removed.ok ? done(own, news) : refused(own, removed, (problem) => showFactors(own, problem), news)
}

async function showFactors(own: Own, problem?: string) {
  const { visit } = own
  const { mfa } = visit.deps.config
  const words = { ...visit.words(accountWords), ...visit.words(factorWords) }
  const answer = await own.api<UserBody>('GET', '/user')
  if (!answer.ok) return unavailable(own, words.factors, answer)
  const factors = (answer.body.factors ?? []).filter(
    ({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code',
  )
  const left =
    mfa.recoveryCodes && factors.length > 0 ? await own.api<CodesLeft>('GET', '/factors/recovery-codes') : undefined
  if (left && !left.ok && left.code !== NO_CODES) return unavailable(own, words.factors, left)
  const kinds: Record<string, string> = { totp: words.totp, phone: words.byPhone, webauthn: words.webauthn }
  return showAccount(own, {
    ...{ title: words.factors, problem, isWide: true },
    body: [
      isSetUp(own) &&
        (factors.length > 0 ? onwards(own, words.goOn) : html`<p class="notice news">${words.demanded}</p>\n`),
      html`<p class="hint">${words.hint}</p>\n`,
      table({
        ...{ caption: words.factors, empty: words.empty },
        columns: [words.name, words.kind, words.addedAt, words.actions],
        rows: factors.map(({ id, friendly_name: name, factor_type: type, created_at }) => {
          const kind = kinds[type] ?? type
          return [
            name ?? kind,
            kind,
            shownTime(visit, created_at),
            visit.formOf({ fields: { way: 'remove', factor_id: id }, body: rowButton(words.remove, name ?? kind) }),
          ]
        }),
      }),
      mfa.totp.enroll &&
        visit.formOf({
          fields: { way: 'begin' },
          body: [
            field({ name: 'name', label: words.appName, hint: words.appNameHint, maxlength: 100 }),
            button({ label: words.add }),
          ],
        }),
      left && codesPart(own, left),
    ],
  })
}

/** Refusal to a user without a set of codes. */
const NO_CODES = 'mfa_factor_not_found'

interface CodesLeft {
  remaining: number
  total: number
}

function codesPart({ visit }: Own, left: ApiAnswer<CodesLeft>): Html {
  const words = visit.words(factorWords)
  const label = left.ok ? words.renewCodes : words.makeCodes
  return html`<h2>${words.codes}</h2>
<p>${left.ok ? fill(words.codesLeft, { left: left.body.remaining, total: left.body.total }) : words.noCodes}</p>
${visit.formOf({ fields: { way: 'codes', had: left.ok ? 'yes' : undefined }, body: button({ label, kind: 'quiet' }) })}`
}

function showNew(own: Own, { id, secret, qrCode }: Begun, problem?: string) {
  const { visit } = own
  const words = visit.words(factorWords)
  const picture = qrCode && `data:image/svg+xml;base64,${Buffer.from(qrCode).toString('base64')}`
  return showAccount(own, {
    ...{ title: words.add, problem },
    body: [
      html`<p>${qrCode ? words.scan : words.type}</p>
${picture && html`<p><img src="${picture}" alt="${words.qrCode}"></p>\n`}<p class="hint">${words.secret}</p>
<p><code>${secret.replaceAll(/(.{4})(?=.)/g, '$1 ')}</code></p>
`,
      visit.formOf({
        fields: { way: 'prove', factor_id: id, secret },
        body: [
          field({
            ...{ name: 'code', label: words.code, required: true, autofocus: true, maxlength: 16 },
            ...{ autocomplete: 'one-time-code', inputmode: 'numeric' },
          }),
          button({ label: words.prove }),
        ],
      }),
    ],
  })
}

function showCodes(own: Own, codes: readonly string[]) {
  const { visit } = own
  const words = visit.words(factorWords)
  return showAccount(own, {
    title: words.codes,
    body: [
      html`<p>${words.keepCodes}</p>
<ul>${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ul>
${isSetUp(own) ? onwards(own, words.kept) : html`<p class="links"><a href="${visit.link(visit.path)}">${words.kept}</a></p>`}
`,
    ],
  })
}
