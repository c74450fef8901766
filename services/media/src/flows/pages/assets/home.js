// The page at `/`: uploads a file in pieces (tus) or imports a URL, then follows the clip's events. The token is kept
// only on request, in this tab; it is never part of a URL.
import { $, form } from './home/elements.js'
import { linkTo, MAKING, waitUntilReady } from './home/follow.js'
import { ACCESS, complain, EDITS, FLAGS, forgetProblems, Problem, showProblem, TEXTS } from './home/problems.js'
import { report, say, sizeOf } from './home/progress.js'
import { showResult } from './home/result.js'
import { importFrom, upload } from './home/upload.js'

const KEPT = 'media token'
const MAX_BYTES = Number(form.dataset.maxBytes)
const NEEDS_TOKEN = form.dataset.needsToken === 'true'

let dropped
let job

$('add').hidden = false
$('token').value = sessionStorage.getItem(KEPT) ?? ''
$('keep').checked = $('token').value !== ''

const keepToken = () => {
  const token = $('token').value.trim()
  if ($('keep').checked && token) sessionStorage.setItem(KEPT, token)
  else sessionStorage.removeItem(KEPT)
}
$('keep').addEventListener('change', keepToken)

// File, chosen or dropped.

const chosenFile = () => dropped ?? $('file').files[0]

function showFile() {
  const file = chosenFile()
  $('file-name').textContent = file ? file.name : 'Choose a file'
  $('file-hint').textContent = file ? sizeOf(file.size) : 'or drop it here'
  $('clear').hidden = !file
  complain('file', '')
  form.dispatchEvent(new CustomEvent('chosen', { detail: file }))
}
$('file').addEventListener('change', () => {
  dropped = undefined
  showFile()
})
$('clear').addEventListener('click', () => {
  forgetFile()
  $('file').focus()
})
function forgetFile() {
  dropped = undefined
  $('file').value = ''
  showFile()
}
for (const type of ['dragenter', 'dragover', 'dragleave', 'drop']) {
  addEventListener(type, (event) => {
    event.preventDefault()
    $('drop').classList.toggle('over', type === 'dragenter' || type === 'dragover')
    const [file] = (type === 'drop' && event.dataTransfer?.files) || []
    if (!file || job) return
    dropped = file
    showFile()
  })
}

/** Disables the box without a lifetime: no deletion could be put off. */
function allowSliding() {
  $('sliding').disabled = !$('expires_in').value
}
$('expires_in').addEventListener('change', allowSliding)
allowSliding()

$('another').addEventListener('click', () => {
  $('preview').pause()
  $('done').hidden = true
  $('add').hidden = false
  const [token, isKept] = [$('token').value, $('keep').checked]
  form.reset()
  $('token').value = token
  $('keep').checked = isKept
  allowSliding()
  forgetFile()
  $('file').focus()
})
$('cancel').addEventListener('click', () => {
  const isAccepted = $('step').textContent === MAKING
  job?.abort(new Problem(isAccepted ? 'You left; the clip is being made all the same.' : 'Cancelled.'))
})

function readFields() {
  const names = [...TEXTS, ...EDITS, ...ACCESS]
  const fields = Object.fromEntries(names.map((name) => [name, $(name).value.trim()]).filter(([, value]) => value))
  const flags = FLAGS.filter((name) => $(name).matches(':checked:enabled'))
  return { ...fields, ...Object.fromEntries(flags.map((name) => [name, 'true'])) }
}

/** Throws a Problem for input that can be refused before sending. */
function readSource(token) {
  const file = chosenFile()
  const source = $('source').value.trim()
  if (NEEDS_TOKEN && !token) throw new Problem('Paste your token here.', 'token')
  if (!file && !source) throw new Problem('Choose a file, or paste an address below.', 'file')
  if (file && source) throw new Problem('A file was chosen too; remove one of them.', 'source')
  if (file?.size === 0) throw new Problem('This file is empty.', 'file')
  if (file && file.size > MAX_BYTES) {
    throw new Problem(`This file has ${sizeOf(file.size)}; ${sizeOf(MAX_BYTES)} are allowed.`, 'file')
  }
  return { file, source }
}

form.addEventListener('submit', async (event) => {
  event.preventDefault()
  if (job) return
  forgetProblems()
  job = new AbortController()
  const { signal } = job
  try {
    const token = $('token').value.trim()
    const { file, source } = readSource(token)
    keepToken()
    form.hidden = true
    $('work').hidden = false
    report(file ? 'Uploading' : 'Fetching the clip', file ? 0 : undefined)
    $('step').focus()
    // Without a token there is no access to events: wait for the answer.
    const headers = token ? { Token: token } : {}
    const wait = token ? { Prefer: 'respond-async' } : {}
    const call = { headers, wait, fields: readFields(), signal }
    const { result, state } = await (file ? upload(file, call) : importFrom(source, call))
    const isPrivate = call.fields.visibility === 'private'
    const addresses = () => (isPrivate ? linkTo(result, call) : result)
    if (state !== 'ready') await waitUntilReady(await addresses(), call, file ? 'file' : 'source')
    $('ends').hidden = !isPrivate
    showResult(await addresses())
    say('The clip is ready')
  } catch (error) {
    $('work').hidden = true
    form.hidden = false
    showProblem(error)
  } finally {
    $('work').hidden = true
    form.hidden = false
    $('step').textContent = ''
    job = undefined
  }
})
