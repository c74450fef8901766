// Problems of the page at `/`, each shown at the field that caused it.

import { data, text } from '../owner/page-data.js'
import { $, form } from './elements.js'

const MAX_SECONDS = Number(form.dataset.maxSeconds)
const IS_SIGNED_IN = form.dataset.signedIn === 'true'

export const EDITS = ['start', 'end', 'crop', 'speed', 'caption', 'caption_position', 'poster_at']
export const TEXTS = ['title', 'tags', 'attribution_site', 'attribution_user', 'attribution_url']
export const ACCESS = ['visibility', 'expires_in', 'album']
export const FLAGS = ['nsfw', 'mute', 'sliding']
const FIELDS = [...(IS_SIGNED_IN ? [] : ['token']), 'file', 'source', 'sliding', ...EDITS, ...TEXTS, ...ACCESS]

/** Refusals that pass: the upload goes on by itself. */
const PASSING = ['rate_limited', 'queue_full', 'busy', 'unavailable']

export function complain(field, message) {
  $(`${field}-error`).textContent = message
  $(`${field}-error`).hidden = !message
  $(field).setAttribute('aria-invalid', String(Boolean(message)))
  if (field === 'file') $('drop').classList.toggle('bad', Boolean(message))
}
for (const field of FIELDS) $(field).addEventListener('input', () => complain(field, ''))

export function forgetProblems() {
  for (const field of FIELDS) complain(field, '')
  $('problem').hidden = true
}

/**
 * A refusal: `field` is the one to show it at; `code` is that of the service, absent for a proxy's page. `ofCaller`
 * says that all further calls would be refused too, `retryAfterSeconds` when the same call may succeed.
 */
export class Problem extends Error {
  constructor(message, field, about = {}) {
    super(message)
    this.field = field
    Object.assign(this, about)
  }
}

/** Makes a Problem of an error answer; `what` is the field that was sent. */
export function toProblem({ status, body, retryAfter }, what) {
  if (status === 0) return unreachable()
  let error = {}
  try {
    error = JSON.parse(body).error ?? {}
  } catch {
    // A proxy's own page.
  }
  const { code, message, param, details = {} } = error
  const said = data.failures[code] ?? message
  const problem = (sentence, field) => new Problem(sentence, field, { code })
  const ofCaller = (sentence) => new Problem(sentence, IS_SIGNED_IN ? undefined : 'token', { code, ofCaller: true })
  if (status === 401) return ofCaller(IS_SIGNED_IN ? data.failures.session_required : text('unknownToken'))
  if (code === 'insufficient_scope') return ofCaller(text('noScope'))
  if (PASSING.includes(code)) return new Problem(said, undefined, { code, retryAfterSeconds: Number(retryAfter) || 1 })
  if (code === 'duration_exceeded') return problem(lengthProblem(details), what)
  if (status === 415) return problem(text('onlyTypes', { types: form.dataset.types }), what)
  const field = String(param ?? '').replace('.', '_')
  // "attribution_site is required" stands beside the field, which needs no name there.
  const sentence = form.dataset.list ? message : String(message).replace(String(param), 'This')
  if (FIELDS.includes(field)) return problem(sentence, field === 'file' || field === 'source' ? what : field)
  if (code === 'source_forbidden' || status === 413 || status === 422 || status === 424) return problem(said, what)
  return problem(said ?? text('answered', { status }))
}

function lengthProblem({ actual, limit }) {
  const length = actual === undefined ? text('isTooLong', { limit }) : text('isLong', { actual, limit })
  // The higher limit of a source of which a part was chosen.
  const isOfSource = limit > MAX_SECONDS && ($('start').value || $('end').value)
  return text(isOfSource ? 'sourceLong' : form.dataset.list ? 'clipOfListLong' : 'clipLong', { what: length })
}

const unreachable = () => new Problem(data.failures.unreachable, undefined, { isLost: true })

/** Makes a Problem of whatever was thrown; `fetch` throws a TypeError without a connection. */
export const asProblem = (error) => (error instanceof Problem ? error : unreachable())

export function showProblem(error) {
  const { field, message } = asProblem(error)
  if (field) {
    for (const part of [$('trim'), $('more')]) if (part.contains($(field))) part.open = true
    complain(field, message)
    $(field).focus()
    return
  }
  $('problem').textContent = message
  $('problem').hidden = false
  $('problem').focus()
}
