import { type Html, html } from '@services/common/html'
import { button } from '@services/common/pages/forms'
import type { Moderation } from '../../../core/reports/moderations.store.ts'
import type { FoundReport } from '../../../core/reports/reports.store.ts'
import type { ModerationAction } from '../../../db/tables.ts'
import { actButton, actForm, link, moment, type View } from './admin-page.http.ts'

/** A clip as moderators see it. */
export interface JudgedClip {
  id: string
  title: string | null
  state: 'processing' | 'ready' | 'failed' | 'hidden' | 'deleted'
  nsfw: boolean
  token: { id: string; name: string } | null
  createdAt: Date | null
  decisions: readonly Moderation[]
}

/** Acts that cannot be undone are behind one more press. */
const LASTING: readonly ModerationAction[] = ['delete', 'block']

/** Keys of the scripts. */
const KEYS: Partial<Record<ModerationAction, string>> = {
  dismiss: 'd',
  nsfw: 'n',
  hide: 'h',
  unhide: 's',
  delete: 'x',
  block: 'b',
}

const UNDO: Partial<Record<ModerationAction, ModerationAction>> = {
  hide: 'unhide',
  nsfw: 'safe',
  unhide: 'hide',
  safe: 'nsfw',
  block: 'unblock',
}

/** Card of a clip with its decisions and the acts that fit its state. `back` is the page to return to. */
export function clipCard(view: View, clip: JudgedClip, back: string, report?: FoundReport): Html {
  const { words } = view
  const name = clip.title ?? clip.id
  const fact = (label: string, value: Html | string) => html`<dt>${label}</dt><dd dir="auto">${value}</dd>\n`
  return html`<article class="judged" tabindex="-1" id="${report?.id ?? clip.id}" aria-label="${name}">
${still(view, clip)}
<div class="about">
<h2 dir="auto">${clip.state === 'deleted' ? name : link(view, `/gif/${clip.id}`, name)}</h2>
<dl>
${report && fact(words.reason, words.reasons[report.reason])}${report?.text && fact(words.reported, report.text)}${report?.email && fact(words.reporter, report.email)}${report && fact(words.since, moment(view, report.createdAt))}${fact(words.state, [words.states[clip.state], clip.nsfw && words.sensitive].filter(Boolean).join(', '))}${fact(words.owner, clip.token ? link(view, `/admin/tokens/${clip.token.id}`, clip.token.name) : words.noOwner)}${!report && clip.createdAt && fact(words.created, moment(view, clip.createdAt))}</dl>
${decisions(view, clip.decisions)}
${report?.state === 'closed' ? html`` : acts(view, clip, back, report)}
</div>
</article>
`
}

const still = ({ baseUrl, words }: View, { id, state }: JudgedClip): Html =>
  state === 'ready' || state === 'hidden'
    ? html`<img class="still" src="${baseUrl}/media/${id}/moderation/jpg" alt="" width="320" height="180" loading="lazy">`
    : html`<p class="still empty">${words.noStill}</p>`

function decisions(view: View, all: readonly Moderation[]): Html {
  const { words } = view
  if (all.length === 0) return html`<p class="hint">${words.noEarlier}</p>`
  const entry = ({ action, reason, note, origin, created_at: at }: Moderation) =>
    html`<li dir="auto">${words.actions[action]}${reason && ` · ${words.reasons[reason]}`} · ${origin} · ${moment(view, at)}${note && html`<br>${note}`}</li>\n`
  return html`<details${all.length < 4 && html` open`}><summary>${words.earlier} (${all.length})</summary><ul>
${all.map(entry)}</ul></details>`
}

function acts(view: View, clip: JudgedClip, back: string, report: FoundReport | undefined): Html {
  const { words } = view
  const hidden = { clip: clip.id, back, ...(report && { report: report.id }) }
  const act = (action: ModerationAction) => {
    const key = report && KEYS[action]
    const label = key ? `${words.actions[action]} (${key})` : words.actions[action]
    const form = actButton(
      view,
      '/admin/decide',
      { ...hidden, action },
      label,
      LASTING.includes(action) ? 'danger' : 'quiet',
    )
    return html`<span class="act" data-act="${action}"${key && html` data-key="${key}"`}>${form}</span>\n`
  }
  if (clip.state === 'deleted') return html`<div class="actions">${act('unblock')}</div>`
  const usual: ModerationAction[] = [
    ...(report ? (['dismiss'] as const) : []),
    clip.nsfw && !report ? 'safe' : 'nsfw',
    clip.state === 'hidden' && !report ? 'unhide' : 'hide',
  ]
  return html`<div class="actions">${usual.map(act)}</div>
<details><summary>${words.more}</summary><div class="actions">${LASTING.map(act)}</div></details>`
}

/** Form that undoes a decision; none for one that cannot be undone. */
export function undoForm(view: View, decision: Moderation, back: string): Html | undefined {
  const action = UNDO[decision.action]
  if (action === undefined) return undefined
  const hidden = { clip: decision.clip_id, action, back }
  return html`<span data-act="undo" data-key="u">${actForm(view, '/admin/decide', hidden, button({ label: `${view.words.undo} (u)`, kind: 'quiet' }))}</span>`
}
