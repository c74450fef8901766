import { type Html, html } from '@services/common/html'
import { button, field, select } from '@services/common/pages/forms'
import { notice } from '@services/common/pages/notices'
import { table } from '@services/common/pages/table'
import type { ListedWebhook } from '../../../core/administration/all-webhooks.store.ts'
import type { DeadLetter } from '../../../core/administration/dead-letters.ts'
import type { QueueState } from '../../../core/administration/queue-state.ts'
import type { showSettings } from '../../../core/administration/shown-settings.ts'
import type { ShownCheck, StorageState } from '../../../core/administration/storage.ts'
import type { listEntries } from '../../../core/audit/audit.store.ts'
import { SUBJECT_OF } from '../../../core/audit/audit.ts'
import { AUDIT_ACTIONS } from '../../../db/tables.ts'
import { actButton, link, moment, pager, type View } from './admin-page.http.ts'

const tokenLink = (view: View, token: { id: string; name: string | null } | null): Html =>
  token ? link(view, `/admin/tokens/${token.id}`, token.name ?? token.id) : html`${view.words.noOwner}`

const clipLink = (view: View, id: string | null): Html | string => (id ? link(view, `/admin/clips?q=${id}`, id) : '-')

export interface QueuePage {
  state: QueueState
  dead: { items: readonly DeadLetter[]; nextCursor: string | null }
  cursor: string | undefined
}

export function queuePage(view: View, { state, dead, cursor }: QueuePage): Html {
  const { words, formats } = view
  const act = (id: string, name: 'retry' | 'delete', label: string) =>
    actButton(view, `/admin/queue/${id}`, { act: name }, label, name === 'delete' ? 'danger' : 'quiet')
  return html`<div data-live="queue">
<h2>${words.making}</h2>
${table({
  ...{ caption: words.making, empty: words.noMaking },
  columns: [words.clip, words.token, words.progress, words.machine, words.since],
  rows: state.making.map(({ clip_id, token, progress, machine, started_at }) => [
    clipLink(view, clip_id),
    tokenLink(view, token),
    html`<progress value="${progress}" max="1" aria-label="${words.progress}"></progress> ${formats.percent(progress)}`,
    machine ?? '-',
    moment(view, started_at),
  ]),
})}
<h2>${words.waiting}</h2>
${table({
  ...{ caption: words.waiting, empty: words.noWaiting },
  columns: [words.token, words.clips],
  rows: state.waiting.map(({ token, clips }) => [tokenLink(view, token), formats.number(clips)]),
})}
<p class="hint">${words.otherQueues}: ${state.queues.map(({ name, waiting }) => `${name} ${formats.number(waiting)}`).join(', ')}</p>
</div>
<h2>${words.dead}</h2>
<p class="hint">${words.deadHint} ${link(view, '/admin/clips?state=failed', words.failedClips)}</p>
${table({
  ...{ caption: words.dead, empty: words.noDead },
  columns: [words.what, words.reason, words.attempts, words.token, words.clip, words.at, words.action],
  rows: dead.items.map((letter) => [
    html`${letter.name}${letter.receiver && html`<br>${letter.receiver}`}`,
    letter.reason ?? words.noSurvivor,
    formats.number(letter.attempts),
    letter.token ? tokenLink(view, letter.token) : '-',
    clipLink(view, letter.clip_id),
    moment(view, letter.at),
    html`<div class="actions">${act(letter.id, 'retry', words.retry)}<span data-act="delete">${act(letter.id, 'delete', words.remove)}</span></div>`,
  ]),
})}${pager(view, '/admin/queue', { cursor }, dead.nextCursor)}`
}

export interface WebhooksPage {
  webhooks: readonly ListedWebhook[]
  isFailing: boolean
  cursor: string | undefined
  nextCursor: string | null
}

export function webhooksPage(view: View, { webhooks, isFailing, cursor, nextCursor }: WebhooksPage): Html {
  const { words, formats, baseUrl } = view
  const tab = (of: boolean, label: string) =>
    html`<a href="${baseUrl}/admin/webhooks${of && '?failing=1'}"${of === isFailing && html` aria-current="true"`}>${label}</a>\n`
  return html`<p class="tabs">${tab(false, words.all)}${tab(true, words.onlyFailing)}</p>
${table({
  ...{ caption: words.webhooks, empty: words.noWebhooks },
  columns: [words.receiver, words.token, words.events, words.failures, words.failing],
  rows: webhooks.map((webhook) => [
    new URL(webhook.url).origin,
    tokenLink(view, { id: webhook.tokenId, name: webhook.tokenName }),
    webhook.events.join(', '),
    formats.number(webhook.failures),
    html`${webhook.failingSince ? moment(view, webhook.failingSince) : '-'}${webhook.disabledAt && ` · ${words.disabled}`}`,
  ]),
})}${pager(view, '/admin/webhooks', { failing: isFailing ? '1' : undefined, cursor }, nextCursor)}`
}

export function storagePage(view: View, { kinds, files, bytes, counted_at, check }: StorageState): Html {
  const { words, formats } = view
  const row = (kind: string, count: { files: number; bytes: number }) => [
    kind,
    formats.number(count.files),
    formats.bytes(count.bytes),
  ]
  return html`${table({
    ...{ caption: words.storage, empty: words.notCounted },
    columns: [words.kind, words.files, words.bytes],
    rows: kinds.length === 0 ? [] : [...kinds.map((count) => row(count.kind, count)), row(words.sum, { files, bytes })],
  })}${counted_at && html`<p class="hint">${words.countedAt}: ${moment(view, counted_at)}</p>\n`}
<h2>${words.lastCheck}</h2>
<div data-live="check">${check ? lastCheck(view, check) : html`<p class="empty">${words.noCheck}</p>`}</div>
<p class="hint">${words.checkHint}</p>
<div class="actions">${actButton(view, '/admin/storage/check', {}, words.checkNow, 'primary')}</div>
`
}

function lastCheck(view: View, { state, begun_at, finished_at, machine, operator, result, error }: ShownCheck): Html {
  const { words, formats } = view
  const found = Object.entries(result?.found ?? {}).map(([kind, number]) => `${kind} ${formats.number(number)}`)
  return html`<dl>
<dt>${words.state}</dt><dd>${words.checkStates[state]}${error && `: ${error}`}</dd>
<dt>${words.since}</dt><dd>${moment(view, begun_at)}</dd>
${finished_at && html`<dt>${words.at}</dt><dd>${moment(view, finished_at)}</dd>\n`}${(operator ?? machine) && html`<dt>${words.machine}</dt><dd>${operator ?? machine}</dd>\n`}${
  result &&
  html`<dt>${words.files}</dt><dd>${formats.number(result.files)} (${formats.bytes(result.bytes)})</dd>
<dt>${words.findings}</dt><dd>${found.join(', ') || words.noFindings}</dd>\n`
}</dl>
${result && result.findings.length > 0 && html`<details><summary>${words.details}</summary><ul>${result.findings.map((finding) => html`<li><code>${JSON.stringify(finding)}</code></li>\n`)}</ul></details>`}`
}

export function settingsPage(view: View, { settings, warnings, review }: ReturnType<typeof showSettings>): Html {
  const { words } = view
  const all = (title: string, lines: readonly string[]) =>
    lines.length > 0 && html`<h2>${title}</h2>\n${lines.map((line) => notice('problem', line))}`
  const shown = ({ value, secret, source }: (typeof settings)[number]) =>
    value ?? (secret && source !== 'unset' && source !== 'default' ? words.secretSet : words.unset)
  return html`${all(words.review, review)}${all(words.warnings, warnings)}${review.length + warnings.length === 0 && html`<p>${words.allGood}</p>`}
<h2>${words.settings}</h2>
${table({
  ...{ caption: words.settings, empty: words.noSettings },
  columns: [words.setting, words.value, words.source],
  rows: settings.map((setting) => [
    html`<code>${setting.name}</code><br><span class="hint">${setting.meaning}</span>`,
    html`<code>${shown(setting)}</code>`,
    words.sources[setting.source],
  ]),
})}`
}

export interface AuditPage {
  entries: Awaited<ReturnType<typeof listEntries>>
  query: { token?: string; action?: string; subject?: string; from?: string; to?: string; cursor?: string }
  nextCursor: string | null
  problem: string | undefined
}

export function auditPage(view: View, { entries, query, nextCursor, problem }: AuditPage): Html {
  const { words, baseUrl } = view
  const text = (name: 'token' | 'subject' | 'from' | 'to', label: string) =>
    field({ name, label, value: query[name], maxlength: 40 })
  const actions = [{ value: '', label: words.any }, ...AUDIT_ACTIONS.map((value) => ({ value, label: value }))]
  const subject = (kind: string, id: string | null) =>
    id !== null && kind === 'clip'
      ? clipLink(view, id)
      : id !== null && kind === 'token'
        ? link(view, `/admin/tokens/${id}`, id)
        : (id ?? '-')
  return html`<form method="get" action="${baseUrl}/admin/audit" class="filters">
${text('token', words.tokenId)}${select({ name: 'action', label: words.action, value: query.action ?? '', options: actions })}${text('subject', words.subject)}${text('from', words.from)}${text('to', words.to)}${button({ label: words.filter })}</form>
${problem && notice('problem', problem)}${table({
  ...{ caption: words.audit, empty: words.noAudit },
  columns: [words.at, words.actor, words.action, words.subject, words.address, words.details],
  rows: entries.map((entry) => [
    moment(view, entry.created_at),
    entry.token_id ? tokenLink(view, { id: entry.token_id, name: entry.token_name }) : (entry.operator ?? '-'),
    entry.action,
    subject(SUBJECT_OF[entry.action], entry.target),
    entry.address ?? '-',
    html`<code>${JSON.stringify(entry.details)}</code>`,
  ]),
})}${pager(view, '/admin/audit', query, nextCursor)}`
}
