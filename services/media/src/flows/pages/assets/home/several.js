// The list of several files and addresses on the page at `/`: first as drafts, then on their way to clips.

import { text } from '../owner/page-data.js'
import { newKey } from '../owner/request-keys.js'
import { caller, keepToken, lacksToken, resetForm } from './caller.js'
import { chosen, leaveOut } from './choose.js'
import { $, form } from './elements.js'
import { allowSliding, readFields } from './fields.js'
import { linkTo, waitUntilReady } from './follow.js'
import { titleOf } from './gather.js'
import { LARGE_BYTES } from './kept-uploads.js'
import { asProblem, complain, forgetProblems, Problem, showProblem } from './problems.js'
import { say, sizeOf } from './progress.js'
import { createQueue } from './queue.js'
import { pause } from './retry.js'
import { rowView } from './row-view.js'
import { importFrom, sendForm } from './send.js'
import { discardUpload, sendPieces } from './send-pieces.js'

const MAX_BYTES = Number(form.dataset.maxBytes)
const SEND_ONE = $('send').textContent
const MORE = $('more').querySelector('summary').textContent

/** Longest time that a clip in the making is followed while others wait for their turn. */
const TURN_MS = 3_000

/** Least time between two sentences for screen readers. */
const QUIET_MS = 5_000

const views = new Map()

/** Throws a Problem for a file that can be refused before sending. */
export function requireFile(file) {
  if (file.size === 0) throw new Problem(text('emptyFile'), 'file')
  if (file.size <= MAX_BYTES) return
  throw new Problem(text('tooLarge', { size: sizeOf(file.size), limit: sizeOf(MAX_BYTES) }), 'file')
}

/** Sends a file or an address. Without a token no key counts: there pieces keep an upload from doubling. */
async function send(row, { signal, report }) {
  const { headers, wait, isKnown } = caller()
  const { file, source, title, key, place } = row
  const fields = { ...row.fields, ...(title && { title }) }
  const call = { headers, wait, fields, signal, report, key, place }
  try {
    if (!file) return await importFrom(source, call)
    requireFile(file)
    return await (file.size > LARGE_BYTES || !isKnown ? sendPieces(file, call) : sendForm(file, call))
  } catch (error) {
    const problem = asProblem(error)
    if (problem.ofCaller && problem.field) complain(problem.field, problem.message)
    throw problem
  }
}

async function follow(row, { report }) {
  const { result, state } = row.accepted
  const turn = new AbortController()
  const call = { headers: caller().headers, signal: turn.signal, report }
  try {
    row.addresses ??= row.fields.visibility === 'private' ? await linkTo(result, call) : result
    if (state === 'ready') return row.addresses
    setTimeout(() => turn.abort(), TURN_MS)
    await waitUntilReady(row.addresses, call)
    return row.addresses
  } catch (error) {
    if (error instanceof Problem && error.retryAfterSeconds === undefined && !error.isLost) throw error
    if (!turn.signal.aborted) await pause(TURN_MS, turn.signal).catch(() => {})
  }
}

const discard = ({ place }) => discardUpload(place, caller().headers)

export const queue = createQueue({ send, follow, discard, newKey, changed })

function changed(row) {
  views.get(row)?.update()
  summarize()
}

// Drafts

const isList = () => chosen().length > 1 || queue.rows.length > queue.inState('draft').length

/** Shows a row for each chosen file and address, as soon as there are several. */
function showChosen() {
  const items = isList() ? chosen() : []
  for (const row of queue.inState('draft')) if (!items.includes(row.item)) remove(row)
  const drafts = queue.inState('draft').map(({ item }) => item)
  const added = items
    .filter((item) => !drafts.includes(item))
    .map((item) => queue.add({ ...item, item, ...(item.file && !item.from && { title: titleOf(item.file) }) }))
  for (const row of added) {
    const view = rowView(row, (action) => ACTIONS[action](row))
    views.set(row, view)
    $('rows').append(view.item)
  }
  const isMany = isList()
  form.dataset.list = isMany ? 'true' : ''
  for (const id of ['trim', 'title-field']) $(id).hidden = isMany
  $('edits-of-one').hidden = !isMany
  $('list').hidden = !isMany
  $('send').hidden = isMany && items.length === 0
  $('more').querySelector('summary').textContent = isMany ? text('moreOfList') : MORE
  $('send').textContent = items.length > 1 ? text('sendMany', { count: items.length }) : SEND_ONE
  summarize()
}
form.addEventListener('chosen', showChosen)

const ACTIONS = {
  pause: queue.pause,
  goOn: queue.goOn,
  cancel: queue.cancel,
  retry: (row) => start([row]),
  remove(row) {
    const { item } = views.get(row)
    const next = item.nextElementSibling ?? item.previousElementSibling
    const isDraft = row.state === 'draft'
    if (!isDraft) remove(row)
    leaveOut(isDraft ? [row.item] : [])
    ;(next?.isConnected
      ? (next.querySelector('button:not([hidden])') ?? next.querySelector('.name, a'))
      : $('file')
    ).focus()
  },
}

function remove(row) {
  views.get(row)?.item.remove()
  views.delete(row)
  queue.remove(row)
}

// Sending

/** Whether the form is for a list; the caller adds a single clip otherwise. */
export function startList() {
  if (!isList()) return false
  const drafts = queue.inState('draft')
  if (drafts.length > 0 && start(drafts)) {
    leaveOut(drafts.map(({ item }) => item))
    const [first] = queue.inState('sending')
    views
      .get(first ?? drafts[0])
      .item.querySelector('.name')
      .focus()
  }
  return true
}

function start(rows) {
  forgetProblems()
  if (lacksToken()) {
    showProblem(new Problem(text('pasteToken'), 'token'))
    return false
  }
  keepToken()
  queue.start(rows, readFields({ isList: true }))
  return true
}

$('retry-all').addEventListener('click', () => start(queue.inState('refused')))
$('clear-list').addEventListener('click', () => {
  for (const row of [...queue.rows]) remove(row)
  leaveOut(chosen())
  resetForm()
  allowSliding()
  showChosen()
  $('file').focus()
})

// Summary

let saidAt = 0
let timer

function summarize() {
  const { all, ready, refused } = queue.count()
  const isDone = all > 0 && ready + refused === all
  const sentence =
    all === ready ? text('allReady', { all }) : text(refused > 0 ? 'tallyRefused' : 'tally', { ready, all, refused })
  $('tally').textContent = all > 0 ? sentence : ''
  $('retry-all').hidden = queue.inState('refused').length < 2
  $('clear-list').hidden = !isDone
  if (all === 0 || timer) return
  const saySummary = () => {
    timer = undefined
    saidAt = Date.now()
    if ($('live').textContent !== $('tally').textContent) say($('tally').textContent)
  }
  timer = setTimeout(saySummary, Math.max(0, saidAt + QUIET_MS - Date.now()))
}
