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
let addresses = []

/** Everything chosen, files first: `{kind: 'file', file}` or `{kind: 'address', source}`. */
export const chosen = () => [...files, ...addresses].slice(0, MOST_FILES)

const linesOf = (typed) => [...new Set(typed.split('\n').map((line) => line.trim()))].filter(Boolean)

/** Reads the addresses; one that was there before is the same object, so that its row stays. */
function readAddresses() {
  const known = new Map(addresses.map((item) => [item.source, item]))
  addresses = linesOf($('source').value).map((source) => known.get(source) ?? { kind: 'address', source })
}

/** Takes these in place of the chosen files, or beside them. `from` is the clip that they are of. */
export function take(given, { beside, otherTypes = 0, from }) {
  const all = [...(beside ? files : []), ...[...given].map((file) => ({ kind: 'file', file, from }))]
  files = all.slice(0, MOST_FILES)
  const notes = [
    from && text('takenFrom', { clip: from }),
    all.length > MOST_FILES && text('leftOut', { count: all.length - MOST_FILES, most: MOST_FILES }),
    otherTypes > 0 && text('otherTypes', { count: otherTypes }),
  ]
  $('left-out').textContent = notes.filter(Boolean).join(' ')
  complain('file', '')
  announce()
}

export function leaveOut(items) {
  const typed = linesOf($('source').value)
  const left = typed.filter((source) => !items.some((item) => item.source === source))
  if (left.length < typed.length) $('source').value = left.join('\n')
  files = files.filter((item) => !items.includes(item))
  $('file').value = ''
  $('left-out').textContent = ''
  announce()
}

function announce() {
  readAddresses()
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
  leaveOut(files)
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
  const pastedLines = linesOf(event.clipboardData.getData('text')).filter((line) => /^https?:\/\//.test(line))
  if (isTyping || pastedLines.length === 0) return
  $('source').value = [...linesOf($('source').value), ...pastedLines].join('\n')
  announce()
})
