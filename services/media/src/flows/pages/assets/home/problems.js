// Problems of the page at `/`, each shown at the field that caused it.
import { $, form } from './elements.js'

const MAX_SECONDS = Number(form.dataset.maxSeconds)

export const EDITS = ['start', 'end', 'crop', 'speed', 'caption', 'caption_position', 'poster_at']
export const TEXTS = ['title', 'tags', 'attribution_site', 'attribution_user', 'attribution_url']
export const ACCESS = ['visibility', 'expires_in']
export const FLAGS = ['nsfw', 'mute', 'sliding']
const FIELDS = ['token', 'file', 'source', 'sliding', ...EDITS, ...TEXTS, ...ACCESS]

export function complain(field, text) {
  $(`${field}-error`).textContent = text
  $(`${field}-error`).hidden = !text
  $(field).setAttribute('aria-invalid', String(Boolean(text)))
  if (field === 'file') $('drop').classList.toggle('bad', Boolean(text))
}
for (const field of FIELDS) $(field).addEventListener('input', () => complain(field, ''))

export function forgetProblems() {
  for (const field of FIELDS) complain(field, '')
  $('problem').hidden = true
}

export class Problem extends Error {
  constructor(message, field) {
    super(message)
    this.field = field
  }
}

/** Makes a Problem of an error answer; `what` is the field that was sent. */
export function toProblem(status, text, what) {
  let error = {}
  try {
    error = JSON.parse(text).error ?? {}
  } catch {
    // A proxy's own page.
  }
  const { code, message, param, details = {} } = error
  if (status === 401) return new Problem('This token is unknown, expired or revoked.', 'token')
  if (code === 'insufficient_scope') return new Problem('This token may not add clips.', 'token')
  if (code === 'duration_exceeded') {
    const { actual, limit } = details
    const isKnown = actual !== undefined
    const sentence = isKnown ? `is ${actual} seconds long; ${limit} are allowed` : `is longer than ${limit} seconds`
    // The higher limit of a source of which a part was chosen.
    const isOfSource = limit > MAX_SECONDS && ($('start').value || $('end').value)
    if (isOfSource) return new Problem(`The source ${sentence}.`, what)
    return new Problem(`The clip ${sentence}. Choose a part of it under “Trim”.`, what)
  }
  if (status === 415) return new Problem(`Only ${form.dataset.types} are accepted.`, what)
  const field = String(param ?? '').replace('.', '_')
  // "attribution_site is required" stands beside the field, which needs no name there.
  const sentence = String(message).replace(String(param), 'This')
  if (FIELDS.includes(field)) return new Problem(sentence, field === 'file' || field === 'source' ? what : field)
  if (code === 'source_forbidden' || status === 413 || status === 422 || status === 424)
    return new Problem(message, what)
  return new Problem(message ?? `The service answered ${status}. Try again in a moment.`)
}

export function showProblem(problem) {
  const { field, message } = problem instanceof Problem ? problem : new Problem('The service cannot be reached.')
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
