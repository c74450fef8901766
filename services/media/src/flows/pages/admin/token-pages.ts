import { type Html, html } from '@services/common/html'
import { button, field } from '@services/common/pages/forms'
import { notice } from '@services/common/pages/notices'
import { table } from '@services/common/pages/table'
import type { listSessionsOf } from '../../../core/tokens/browser-sessions.store.ts'
import { ALL_SCOPES, USUAL_SCOPES } from '../../../core/tokens/scopes.ts'
import type { ApiToken } from '../../../core/tokens/tokens.store.ts'
import type { TokenDay } from '../../../core/tokens/usage.store.ts'
import { type Scope, TOKEN_LIMITS, type TokenLimits } from '../../../db/tables.ts'
import { actButton, actForm, link, moment, pager, type View } from './admin-page.http.ts'
import { usageLine } from './usage-line.ts'

/** State of a token at a time. */
const stateOf = ({ revoked_at: revoked, expires_at: expires }: ApiToken, now: Date) =>
  revoked ? 'revoked' : expires && expires <= now ? 'expired' : 'good'

export interface TokenList {
  tokens: readonly ApiToken[]
  cursor: string | undefined
  nextCursor: string | null
  /** Secret value of a token that was just created. */
  created?: string | undefined
  /** Reason why none was created. */
  problem?: string | undefined
  /** Fields of a form that was refused. */
  typed?: Record<string, string> | undefined
  /** Id of the form, which makes one token alone. */
  formId: string
  now: Date
}

export function tokensPage(view: View, list: TokenList): Html {
  const { tokens, cursor, nextCursor, created, problem, typed, formId, now } = list
  const { words } = view
  return html`${
    created &&
    html`<div class="notice news" role="status"><p>${words.shownOnce}</p>
<p><code class="secret" id="secret">${created}</code></p><p class="actions scripted"><button type="button" class="quiet" data-copy="secret">${words.copy}</button></p></div>\n`
  }${problem && notice('problem', problem)}${table({
    ...{ caption: words.tokens, empty: words.noTokens },
    columns: [words.name, words.scopes, words.state, words.used, words.created],
    rows: tokens.map((token) => [
      html`${link(view, `/admin/tokens/${token.id}`, token.name)} <code>${token.prefix}&hellip;</code>`,
      token.scopes.join(', '),
      words[stateOf(token, now)],
      token.last_used_at ? moment(view, token.last_used_at) : words.never,
      moment(view, token.created_at),
    ]),
  })}${pager(view, '/admin/tokens', { cursor }, nextCursor)}
<section class="narrow"><h2>${words.newToken}</h2>
${actForm(view, '/admin/tokens', { form_id: formId }, html`${fields(view, { ...(typed ? typedIn(typed) : { name: '', scopes: USUAL_SCOPES, limits: {} }), lifetimeHint: words.lifetimeHint })}${button({ label: words.create })}`)}</section>
`
}

export interface TokenDetails {
  token: ApiToken
  days: readonly TokenDay[]
  sessions: Awaited<ReturnType<typeof listSessionsOf>>
  problem?: string | undefined
  /** Fields of a form that was refused. */
  typed?: Record<string, string> | undefined
  now: Date
}

/** State that the form of a token changes, as its page shows it. */
const shownState = ({ name, scopes, limits, expires_at: expires }: ApiToken) => ({
  ...{ name, scopes: scopes.join(', '), expires: expires?.toISOString() ?? '' },
  limits: TOKEN_LIMITS.flatMap((limit) => (limits[limit] === undefined ? [] : `${limit} ${limits[limit]}`)).join(', '),
})

/** Says what of a token is no longer as the page of this form showed it; undefined if nothing is. */
export function changedSince(
  { words, formats }: View,
  token: ApiToken,
  form: Record<string, string>,
): string | undefined {
  const state = shownState(token)
  const names = (['name', 'scopes', 'limits', 'expires'] as const).filter(
    (each) => form[`shown_${each}`] !== state[each],
  )
  if (names.length === 0) return undefined
  const expires = token.expires_at ? formats.moment(token.expires_at) : words.never
  const values = { ...state, limits: state.limits || words.none, expires }
  const changed = names.map((each) => `${words[each]}: ${values[each]}.`).join(' ')
  return `${words.changedElsewhere} ${changed} ${words.saveAgain}`
}

export function tokenPage(view: View, { token, days, sessions, problem, typed, now }: TokenDetails): Html {
  const { words, formats } = view
  const path = `/admin/tokens/${token.id}`
  const state = stateOf(token, now)
  return html`${problem && notice('problem', problem)}<dl>
<dt>Id</dt><dd><code>${token.id}</code></dd>
<dt>${words.state}</dt><dd>${words[state]}</dd>
<dt>${words.expires}</dt><dd>${token.expires_at ? moment(view, token.expires_at) : words.never}</dd>
<dt>${words.used}</dt><dd>${token.last_used_at ? moment(view, token.last_used_at) : words.never}</dd>
</dl>
<p>${link(view, `/admin/clips?token=${token.id}`, words.itsClips)}</p>
<h2>${words.usage}</h2>
${usageLine(view, days, now)}${table({
  ...{ caption: words.usage, empty: words.noUsage },
  columns: [words.day, words.calls, words.clipsAdded, words.bytes],
  rows: days
    .toReversed()
    .map(({ day, requests, clips, bytes }) => [
      day,
      formats.number(requests),
      formats.number(clips),
      formats.bytes(bytes),
    ]),
})}
<h2>${words.sessions}</h2>
${table({
  ...{ caption: words.sessions, empty: words.noSessions },
  columns: [words.browser, words.created, words.used, words.expires],
  rows: sessions.map((session) => [
    session.client_name ?? '-',
    moment(view, session.created_at),
    moment(view, session.last_used_at),
    moment(view, session.expires_at),
  ]),
})}${sessions.length > 0 && actButton(view, `${path}/sessions`, {}, words.endSessions)}
${
  state !== 'revoked' &&
  html`<section class="narrow"><h2>${words.save}</h2>
${actForm(view, path, shownFields(token), html`${fields(view, { ...(typed ? typedIn(typed) : token), lifetimeHint: words.lifetimeKept })}${button({ label: words.save })}`)}
<h2>${words.revoke}</h2><p>${words.revokeHint}</p><span data-act="revoke">${actButton(view, `${path}/revoke`, {}, words.revoke, 'danger')}</span></section>\n`
}`
}

/** Hidden fields of `shownState`: a form from a page of an earlier state is refused. */
const shownFields = (token: ApiToken) =>
  Object.fromEntries(Object.entries(shownState(token)).map(([name, value]) => [`shown_${name}`, value]))

const typedIn = (body: Record<string, string>): Typed => ({
  name: body.name ?? '',
  scopes: ALL_SCOPES.filter((scope) => body[`scope_${scope}`] !== undefined),
  limits: Object.fromEntries(TOKEN_LIMITS.map((limit) => [limit, body[`limit_${limit}`]])),
  lifetime: body.expires_in,
})

interface Typed {
  name: string
  scopes: readonly Scope[]
  limits: Partial<Record<keyof TokenLimits, string | number | undefined>>
  lifetime?: string | undefined
}

function fields(
  { words }: View,
  { name, scopes, limits, lifetime, lifetimeHint }: Typed & { lifetimeHint: string },
): Html {
  const scope = (each: Scope) =>
    html`<label class="check"><input type="checkbox" name="scope_${each}" value="yes"${scopes.includes(each) && html` checked`}><span>${each}</span></label>\n`
  return html`${field({ name: 'name', label: words.name, value: name, required: true, maxlength: 100 })}<fieldset><legend>${words.scopes}</legend>
${ALL_SCOPES.map(scope)}</fieldset>
${field({ name: 'expires_in', label: words.lifetime, value: lifetime, hint: lifetimeHint, maxlength: 20 })}<details><summary>${words.limits}</summary><p class="hint">${words.limitsHint}</p>
${TOKEN_LIMITS.map((limit) =>
  field({
    ...{
      name: `limit_${limit}`,
      label: words.limitNames[limit],
      value: limits[limit]?.toString(),
      inputmode: 'numeric',
      maxlength: 16,
    },
  }),
)}</details>
`
}
