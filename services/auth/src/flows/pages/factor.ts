// /ui/factor: proves a second factor in the session of this browser, by an authenticator app, a phone, a security key
// or a recovery code. With a checkbox the device is trusted: its token is a cookie here (core/trusted-devices).
import { type Html, type HtmlValue, html } from '@services/common/html'
import { button, checkbox, field } from '@services/common/pages/forms'
import type { Config } from '../../config.ts'
import { hasProvenSecondFactor, hasVerifiedFactor, isSecondProof } from '../../core/factors/assurance.ts'
import { relyingPartyOf } from '../../core/factors/relying-party.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import type { FactorJson } from '../../db/tables.ts'
import type { Page } from '../../http/hosted/answer-pages.ts'
import type { BrowserCaller } from '../../http/hosted/browser-session.ts'
import type { ApiAnswer } from '../../http/hosted/call-api.ts'
import { credentialIn } from '../../http/hosted/passkey-offer.ts'
import type { Visit } from '../../http/hosted/visit.ts'
import { fill } from '../../words/language.ts'
import { factorWords } from '../../words/pages/factor.ts'
import { momentsAgo } from './just-signed-in.ts'
import { ceremony, PASSKEY_SCRIPT } from './passkey.ts'

/** Value of `factor` for recovery codes, which are no factor of their own. */
const RECOVERY = 'recovery'

export const factorPage: Page = {
  path: '/ui/factor',
  // The page of a security key opens a challenge.
  hasEffect: true,
  async get(visit) {
    const caller = await visit.caller()
    return needsFactor(visit, caller) ? showFactor(visit, caller) : visit.goTo('/ui/sign-in')
  },
  async post(visit) {
    const caller = await visit.caller()
    if (!needsFactor(visit, caller)) return visit.goTo('/ui/sign-in')
    return visit.form.way === 'send' ? sendCode(visit, caller) : prove(visit, caller)
  },
}

/** A page that leads here and back wants a proof of now, whatever the session has. */
const needsFactor = (visit: Visit, caller: BrowserCaller | undefined): caller is BrowserCaller =>
  caller !== undefined &&
  hasVerifiedFactor(caller.user) &&
  !hasJustProven(visit, caller) &&
  (visit.flow.next !== undefined || !hasProvenSecondFactor(caller.session))

/** The first press of two has proven it; the second found its code used. */
const hasJustProven = ({ carried, deps }: Visit, { session: { amr } }: BrowserCaller): boolean =>
  carried.error !== undefined &&
  amr.some(({ method, timestamp }) => isSecondProof(method) && timestamp >= momentsAgo(deps))

/** Factors that these pages can ask for, an app first. */
const usableFactors = ({ deps: { config } }: Visit, { user }: BrowserCaller): FactorJson[] =>
  (['totp', 'phone', 'webauthn'] as const)
    .filter((type) => config.mfa[type].verify && (type !== 'webauthn' || takesKeys(config)))
    .flatMap((type) =>
      (user.factors ?? []).filter(({ factor_type, status }) => factor_type === type && status === 'verified'),
    )

/** Whether keys answer to this origin: the settings bind them to it, or to the site. */
const takesKeys = ({ mfa, redirectAllowList: allowList, server, siteUrl }: Config): boolean =>
  relyingPartyOf(mfa.webauthn, { siteUrl, allowList }, undefined).origins.includes(new URL(server.externalUrl).origin)

/** The factor that the page asks for: the chosen one, else the first. */
const chosenFactor = (visit: Visit, caller: BrowserCaller): FactorJson | undefined => {
  const wanted = visit.form.factor ?? visit.query.factor
  const factors = usableFactors(visit, caller)
  return factors.find(({ id }) => id === wanted) ?? factors[0]
}

const isByRecovery = ({ form, query }: Visit) => (form.factor ?? query.factor) === RECOVERY

interface Opened {
  id: string
  webauthn?: { credential_options: { publicKey: object } }
}

async function sendCode(visit: Visit, caller: BrowserCaller) {
  const factor = chosenFactor(visit, caller)
  if (!factor) return visit.goTo('/ui/factor')
  const answer = await challenge(visit, caller, factor)
  if (!answer.ok) return visit.retry({ problem: visit.explain(answer) }, { factor: factor.id })
  return visit.goTo('/ui/factor', { query: { factor: factor.id }, carry: { challenge: answer.body.id } })
}

const challenge = (visit: Visit, as: BrowserCaller, { id }: FactorJson) =>
  visit.api<Opened>('POST', `/factors/${id}/challenge`, {}, { as })

async function prove(visit: Visit, caller: BrowserCaller) {
  const answer = await verify(visit, caller)
  if (!answer.ok) {
    const isKey = visit.form.credential !== undefined && KEY_REFUSED.includes(answer.code)
    const problem = isKey ? visit.words(factorWords).keyRefused : visit.explain(answer)
    const { factor = '' } = visit.form
    // The refusal may have ended the session.
    const isOver = ['mfa_verification_rejected', 'session_not_found', 'user_banned'].includes(answer.code)
    if (isOver) return visit.goTo('/ui/sign-in', { carry: { problem } })
    // A used challenge opens nothing more.
    const challenge = answer.code === 'mfa_challenge_expired' ? '' : (visit.carried.challenge ?? '')
    return visit.goTo('/ui/factor', { query: { factor }, carry: { challenge, error: problem } })
  }
  if (visit.form.trust === 'yes') await trustDevice(visit, caller)
  return visit.signedIn(answer.body)
}

/** Refusals of a key's answer; the next one has a challenge of its own. */
const KEY_REFUSED = ['mfa_verification_failed', 'mfa_challenge_expired', 'mfa_factor_not_found', 'validation_failed']

async function verify(visit: Visit, as: BrowserCaller): Promise<ApiAnswer<SessionBody>> {
  const { code = '' } = visit.form
  if (isByRecovery(visit)) return visit.api('POST', '/factors/recovery-codes/verify', { code }, { as })
  const factor = chosenFactor(visit, as)
  if (!factor) return { ok: false, status: 404, code: 'mfa_factor_not_found', message: '' }
  if (factor.factor_type === 'webauthn') {
    const { challenge_id, credential = '' } = visit.form
    const webauthn = { type: 'request', credential_response: credentialIn(credential).credential }
    return visit.api('POST', `/factors/${factor.id}/verify`, { challenge_id, webauthn }, { as })
  }
  const opened: ApiAnswer<{ id: string }> = !visit.carried.challenge
    ? await challenge(visit, as, factor)
    : { ok: true, status: 200, body: { id: visit.carried.challenge }, headers: {} }
  if (!opened.ok) return opened
  const body = { challenge_id: opened.body.id, code }
  return visit.api('POST', `/factors/${factor.id}/verify`, body, { as })
}

/** A refusal costs one more proof at the next sign-in, and no sign-in now. */
async function trustDevice(visit: Visit, as: BrowserCaller): Promise<void> {
  const answer = await visit.api<{ token: string }>('POST', '/factors/trusted-devices', {}, { as })
  if (answer.ok) visit.trustDevice(answer.body.token)
}

async function showFactor(visit: Visit, caller: BrowserCaller) {
  const words = visit.words(factorWords)
  const { error } = visit.carried
  const factor = isByRecovery(visit) ? undefined : chosenFactor(visit, caller)
  const isKey = factor?.factor_type === 'webauthn'
  const opened = isKey ? await challenge(visit, caller, factor) : undefined
  const problem = opened?.ok === false ? visit.explain(opened) : (visit.carried.problem ?? (isKey ? error : undefined))
  const body = isByRecovery(visit)
    ? recoveryForm(visit, error)
    : factor?.factor_type === 'phone'
      ? phoneForms(visit, factor, error)
      : factor && (opened ? keyForm(visit, factor, opened) : appForm(visit, factor, error))
  const { name } = visit.deps.config.pages
  return visit.show({
    title: words.title,
    ...((problem || !body) && { problem: body ? problem : words.none }),
    body: [
      factor?.factor_type === 'totp' && html`<p>${fill(words.app, { name })}</p>\n`,
      body,
      otherWays(visit, caller, factor),
      html`<p class="links"><a href="${visit.link('/ui/sign-out')}">${words.signOut}</a></p>\n`,
    ],
    scripts: isKey ? [PASSKEY_SCRIPT] : [],
  })
}

/** Nothing to press where the challenge was refused: the page says why. */
function keyForm(visit: Visit, factor: FactorJson, opened: ApiAnswer<Opened>): HtmlValue {
  const words = visit.words(factorWords)
  const options = opened.ok ? opened.body.webauthn?.credential_options.publicKey : undefined
  if (!opened.ok || !options) return html`<p>${words.key}</p>\n`
  const challenge = JSON.stringify({ challenge_id: opened.body.id, options })
  const press = {
    kind: 'get',
    label: words.pressKey,
    problem: words.keyFailed,
    needsScript: words.keyNeedsScript,
  } as const
  const body = [ceremony({ ...press, challenge }), trustBox(visit)]
  return [html`<p>${words.key}</p>\n`, visit.formOf({ fields: { factor: factor.id }, body })]
}

const appForm = (visit: Visit, factor: FactorJson, error: string | undefined): Html =>
  visit.formOf({ fields: { factor: factor.id }, body: codeFields(visit, error) })

function phoneForms(visit: Visit, factor: FactorJson, error: string | undefined): Html[] {
  const words = visit.words(factorWords)
  const digits = digitsOf(factor)
  const isSent = Boolean(visit.carried.challenge)
  const send = visit.formOf({
    fields: { factor: factor.id, way: 'send' },
    body: button(isSent ? { label: words.sendAgain, kind: 'quiet' } : { label: words.send }),
  })
  if (!isSent) return [html`<p>${fill(words.phone, { digits })}</p>\n`, send]
  return [html`<p>${fill(words.texted, { digits })}</p>\n`, appForm(visit, factor, error), send]
}

function codeFields(visit: Visit, error: string | undefined): Html[] {
  const words = visit.words(factorWords)
  const code = field({
    ...{ name: 'code', label: words.code, error, required: true, autofocus: true, maxlength: 64 },
    ...{ autocomplete: 'one-time-code', inputmode: 'numeric' },
  })
  return [code, trustBox(visit), button({ label: words.verify })]
}

function trustBox(visit: Visit): Html {
  const words = visit.words(factorWords)
  const { ttlSeconds } = visit.deps.config.mfa.trustedDevices
  if (ttlSeconds === 0) return html``
  const days = Math.max(1, Math.round(ttlSeconds / 86_400))
  return checkbox({ name: 'trust', label: fill(words.trust, { days }), hint: words.trustHint })
}

function recoveryForm(visit: Visit, error: string | undefined): Html {
  const words = visit.words(factorWords)
  return visit.formOf({
    fields: { factor: RECOVERY },
    body: [
      html`<p>${words.recovery}</p>\n`,
      field({
        ...{ name: 'code', label: words.recoveryCode, error, required: true, autofocus: true, maxlength: 64 },
        autocomplete: 'off',
      }),
      button({ label: words.verify }),
    ],
  })
}

/** Links to the factors that the page does not ask for. */
function otherWays(visit: Visit, caller: BrowserCaller, shown: FactorJson | undefined): Html[] {
  const words = visit.words(factorWords)
  const linkTo = (factor: string, label: string) =>
    html`<p><a href="${visit.link('/ui/factor', { factor })}">${label}</a></p>\n`
  const others = usableFactors(visit, caller).filter((factor) => factor !== shown)
  const hasCodes = (caller.user.factors ?? []).some(({ factor_type: type }) => type === 'recovery_code')
  return [
    ...others.map((factor) => {
      if (factor.factor_type === 'phone') return linkTo(factor.id, fill(words.usePhone, { digits: digitsOf(factor) }))
      const { friendly_name: name } = factor
      if (factor.factor_type === 'webauthn') {
        return linkTo(factor.id, name === '' ? words.pressKey : fill(words.useNamedKey, { name }))
      }
      return linkTo(factor.id, name === '' ? words.useApp : fill(words.useNamedApp, { name }))
    }),
    ...(hasCodes && !isByRecovery(visit) ? [linkTo(RECOVERY, words.useRecovery)] : []),
  ]
}

const digitsOf = ({ phone }: FactorJson) => (phone ?? '').slice(-2)
