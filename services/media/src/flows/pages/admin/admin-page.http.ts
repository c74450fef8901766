// Pages for administrators: server-rendered, with forms that work without script. They call the functions that the API
// calls. This file is their frame: scope, menu, and the proof that a form brings.
import { type Html, html } from '@services/common/html'
import { button, hiddenFields } from '@services/common/pages/forms'
import { notice } from '@services/common/pages/notices'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { allows } from '../../../core/tokens/scopes.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { acceptSmallForms } from '../../../http/body-parsers.ts'
import { isOwnForm } from '../../../http/browser-session.ts'
import { adminWords } from '../../../words/admin.ts'
import type { Language } from '../../../words/language.ts'
import { type Formats, formatsOf } from '../library/formats.ts'
import { sendSignedInPage } from '../owner-page.http.ts'
import { requireVisitor, visitorOf } from '../visitor.http.ts'

export const MAX_BODY_BYTES = 8 * 1024

/** Sections of the menu, by their paths below /admin. */
const SECTIONS = ['reports', 'clips', 'tokens', 'queue', 'webhooks', 'storage', 'settings', 'audit'] as const
export type Section = (typeof SECTIONS)[number]

type AdminWords = (typeof adminWords)[Language]

/** Values that every page is rendered with. */
export interface View {
  language: Language
  words: AdminWords
  formats: Formats
  baseUrl: string
  formToken: string
}

/** Requires a session with the scope `admin` for all pages of `app`. */
export function requireAdmin(app: FastifyInstance, deps: Deps): void {
  acceptSmallForms(app, MAX_BODY_BYTES)
  requireVisitor(app, deps)
  app.addHook('onRequest', async (request) => {
    if (allows(visitorOf(request).token, 'admin')) return
    throw apiError('insufficient_scope', { details: { scope: 'admin' } })
  })
  // After the body was read, and before any act.
  app.addHook('preHandler', async (request) => {
    if (request.method !== 'POST') return
    const { form_token: given } = (request.body ?? {}) as { form_token?: unknown }
    if (typeof given !== 'string' || !isOwnForm(visitorOf(request), given)) throw apiError('wrong_origin')
  })
}

export function viewOf({ config }: Pick<Deps, 'config'>, request: FastifyRequest): View {
  const { language, formToken } = visitorOf(request)
  const words = adminWords[language]
  return { language, words, formats: formatsOf(language), baseUrl: config.site.baseUrl, formToken }
}

export interface AdminPage {
  section: Section
  /** Heading, where it is not the name of the section. */
  title?: string
  body: Html
}

export function sendAdminPage(
  { config }: Pick<Deps, 'config'>,
  request: FastifyRequest,
  reply: FastifyReply,
  { section, title, body }: AdminPage,
): FastifyReply {
  const view = viewOf({ config }, request)
  const { words, baseUrl } = view
  const entry = (name: Section) =>
    html`<a href="${baseUrl}${pathOf(name)}"${name === section && html` aria-current="page"`}>${words[name]}</a>\n`
  return sendSignedInPage(reply, config.site, visitorOf(request), {
    ...{ title: title ?? words[section], current: '/admin', styles: ['admin/admin.css'], scripts: ['admin/admin.js'] },
    body: html`<nav class="sections" aria-label="${words.pages}">${SECTIONS.map(entry)}</nav>
${body}`,
    data: { words: Object.fromEntries(SCRIPT_WORDS.map((key) => [key, words[key]])) },
  })
}

const SCRIPT_WORDS = ['cancel', 'close', 'confirm', 'copied', 'notCopied', 'noLonger'] as const

/** Path of a section; reports are first. */
const pathOf = (section: Section): string => (section === 'reports' ? '/admin' : `/admin/${section}`)

/** Leads back to a page after an act, which that page names. */
export const leadBack = (
  { config }: Pick<Deps, 'config'>,
  reply: FastifyReply,
  path: string,
  done: Record<string, string>,
): FastifyReply => {
  const url = new URL(path, 'http://path')
  for (const [name, value] of Object.entries(done)) url.searchParams.set(name, value)
  return reply
    .header('cache-control', 'private, no-store')
    .redirect(`${config.site.baseUrl}${url.pathname}${url.search}`, 303)
}

/** Page of the administration that a form was on; the first one in place of any other address. */
export const backTo = (given: unknown): string =>
  typeof given === 'string' && /^\/admin(?:[/?][\w\-./?=&%+*]*)?$/.test(given) ? given : '/admin'

/** A form that acts, with the proof of its session. */
export const actForm = (
  { baseUrl, formToken }: View,
  action: string,
  hidden: Record<string, string>,
  body: Html,
): Html =>
  html`<form method="post" action="${baseUrl}${action}">${hiddenFields({ form_token: formToken, ...hidden })}${body}</form>\n`

/** A button that acts by itself. */
export const actButton = (
  view: View,
  action: string,
  hidden: Record<string, string>,
  label: string,
  kind: 'primary' | 'quiet' | 'danger' = 'quiet',
): Html => actForm(view, action, hidden, button({ label, kind }))

/** Sentence about an act that was done; empty for a page that was opened otherwise. */
export function doneNotice({ words }: View, done: unknown, more?: string | Html): Html {
  const texts: Record<string, string> = words.done
  const text = typeof done === 'string' && Object.hasOwn(texts, done) ? texts[done] : undefined
  if (text === undefined) return html``
  return more === undefined || typeof more === 'string'
    ? notice('news', [text, more].filter(Boolean).join(' '))
    : html`<div class="notice news undone" role="status"><p>${text}</p>${more}</div>\n`
}

export const moment = ({ formats }: View, at: Date): Html =>
  html`<time datetime="${at.toISOString()}">${formats.moment(at)}</time>`

export const link = ({ baseUrl }: View, path: string, label: string): Html =>
  html`<a href="${baseUrl}${path}" dir="auto">${label}</a>`

/** Path with those members of a query that say something. */
export function pathWith(path: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]))
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path
}

/** Link to the next page of a list, and back to the first. */
export function pager(
  { baseUrl, words }: View,
  path: string,
  query: Record<string, string | undefined>,
  next: string | null,
): Html {
  const address = (cursor: string | undefined) => baseUrl + pathWith(path, { ...query, cursor })
  const isFurther = query.cursor !== undefined
  if (!isFurther && next === null) return html``
  return html`<nav class="links" aria-label="${words.next}">${isFurther && html`<a href="${address(undefined)}">${words.first}</a>`}${next !== null && html`<a href="${address(next)}" rel="next">${words.next}</a>`}</nav>\n`
}
