// The files and addresses that are chosen: by the dialog, dropped, pasted or typed. A change is reported by the event
// `chosen` of the form; its detail is the file when it is the only thing chosen.

import { text } from '../owner/page-data.js'
import { $, form } from './elements.js'
import { droppedFiles, MOST_FILES } from './gather.js'
import { complain } from './problems.js'
import { sizeOf } from './progress.js'

const TYPES = $('file').accept.split(',')
const [NOTHING_CHOSEN, HOW_TO_CHOOSE] = [$('file-name').textContent, $('file-hint').textContent]

let files = []

/** Everything chosen, files first: `{kind: 'file', file}` or `{kind: 'address', source}`. */
export const chosen = () => [...files, ...addressesIn($('source').value).map(asAddress)]

const addressesIn = (typed) => [...new Set(typed.split('\n').map((line) => line.trim()))].filter(Boolean)

/** The same object for the same address, so that its row stays. */
const known = new Map()
const asAddress = (source) => {
  if (!known.has(source)) known.set(source, { kind: 'address', source })
  return known.get(source)
}

/** Takes these in place of the chosen files, or beside them. */
function take(given, { beside, otherTypes = 0 }) {
  const all = [...(beside ? files : []), ...[...given].map((file) => ({ kind: 'file', file }))]
  files = all.slice(0, MOST_FILES)
  const notes = [
    all.length > MOST_FILES && text('leftOut', { count: all.length - MOST_FILES, most: MOST_FILES }),
    otherTypes > 0 && text('otherTypes', { count: otherTypes }),
  ]
  $('left-out').textContent = notes.filter(Boolean).join(' ')
  complain('file', '')
  announce()
}

/** Leaves one out, or with no argument everything. */
export function leaveOut(item) {
  files = item ? files.filter((each) => each !== item) : []
  const typed = item ? addressesIn($('source').value).filter((source) => source !== item.source) : []
  if (!item || item.kind === 'address') $('source').value = typed.join('\n')
  $('file').value = ''
  $('left-out').textContent = ''
  announce()
}

function announce() {
  const all = chosen()
  const file = all.length === 1 ? all[0].file : undefined
  $('file-name').textContent = file ? file.name : NOTHING_CHOSEN
  $('file-hint').textContent = file ? sizeOf(file.size) : HOW_TO_CHOOSE
  $('clear').hidden = !file
  form.dispatchEvent(new CustomEvent('chosen', { detail: file }))
}

const isAccepted = ({ name, type }) => TYPES.some((each) => each === type || name.toLowerCase().endsWith(each))

// The dialog replaces a single file, as any other form does; to a list it adds.
$('file').addEventListener('change', () => take($('file').files, { beside: chosen().length > 1 || form.dataset.list }))
$('clear').addEventListener('click', () => {
  leaveOut(files[0])
  $('file').focus()
})
$('source').addEventListener('input', announce)

$('choose-folder').addEventListener('click', () => $('folder').click())
$('folder').addEventListener('change', () => {
  const all = [...$('folder').files]
  const accepted = all.filter(isAccepted)
  $('folder').value = ''
  take(accepted, { beside: true, otherTypes: all.length - accepted.length })
})

for (const type of ['dragenter', 'dragover', 'dragleave', 'drop']) {
  addEventListener(type, async (event) => {
    event.preventDefault()
    $('drop').classList.toggle('over', type === 'dragenter' || type === 'dragover')
    if (type !== 'drop' || form.hidden || !event.dataTransfer) return
    const { files: dropped, otherTypes } = await droppedFiles(event.dataTransfer, isAccepted)
    if (dropped.length > 0 || otherTypes > 0) take(dropped, { beside: true, otherTypes })
  })
}

addEventListener('paste', (event) => {
  const { files: pasted } = event.clipboardData
  const isTyping = event.target.matches?.('input, textarea')
  if (form.hidden || $('add').hidden) return
  if (pasted.length > 0) {
    event.preventDefault()
    return take(pasted, { beside: true })
  }
  const addresses = addressesIn(event.clipboardData.getData('text')).filter((line) => /^https?:\/\//.test(line))
  if (isTyping || addresses.length === 0) return
  $('source').value = [...addressesIn($('source').value), ...addresses].join('\n')
  announce()
})
