// The page at `/`: uploads a file in pieces (tus) or imports a URL, then follows the clip's events. The token is kept
// only on request, in this tab; it is never part of a URL.
const $ = (id) => document.getElementById(id)
const form = $('form')
const KEPT = 'media token'
const MAX_BYTES = Number(form.dataset.maxBytes)
const MAX_SECONDS = Number(form.dataset.maxSeconds)
const MAKING = 'Making the files'
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

// Problems, shown at their field.

const EDITS = ['start', 'end', 'crop', 'speed', 'caption', 'caption_position', 'poster_at']
const TEXTS = ['title', 'tags', 'attribution_site', 'attribution_user', 'attribution_url']
const ACCESS = ['visibility', 'expires_in']
const FLAGS = ['nsfw', 'mute', 'sliding']
const FIELDS = ['token', 'file', 'source', 'sliding', ...EDITS, ...TEXTS, ...ACCESS]

function complain(field, text) {
  $(`${field}-error`).textContent = text
  $(`${field}-error`).hidden = !text
  $(field).setAttribute('aria-invalid', String(Boolean(text)))
  if (field === 'file') $('drop').classList.toggle('bad', Boolean(text))
}
for (const field of FIELDS) $(field).addEventListener('input', () => complain(field, ''))

function forgetProblems() {
  for (const field of FIELDS) complain(field, '')
  $('problem').hidden = true
}

class Problem extends Error {
  constructor(message, field) {
    super(message)
    this.field = field
  }
}

/** Makes a Problem of an error answer; `what` is the field that was sent. */
function toProblem(status, text, what) {
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

function show(problem) {
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

// Progress.

let saidPercent = 0

function report(step, fraction, detail = '') {
  $('detail').textContent = detail
  if (fraction === undefined) $('bar').removeAttribute('value')
  else $('bar').value = Math.round(fraction * 100)
  if ($('step').textContent !== step) {
    $('step').textContent = step
    saidPercent = 0
    say(step)
  }
  // Quarters only, so that a screen reader does not announce every percent.
  const quarter = Math.floor((fraction ?? 0) * 4) * 25
  if (quarter > saidPercent && quarter < 100) {
    saidPercent = quarter
    say(`${step}, ${quarter} percent`)
  }
}
const say = (text) => {
  $('live').textContent = text
}
const sizeOf = (bytes) => (bytes < 100_000 ? `${Math.ceil(bytes / 1024)} KB` : `${inMegabytes(bytes)} MB`)
const inMegabytes = (bytes) => (bytes / 1024 ** 2).toFixed(bytes < 10 * 1024 ** 2 ? 1 : 0)

const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })

// Upload of a file, in pieces that survive a bad connection.

const TUS = { 'Tus-Resumable': '1.0.0' }
const TIME_LIMITS = [500, 1_000, 2_000, 4_000, 8_000, 16_000]
const COMES_BACK = [409, 423, 429, 502, 503, 504]

const inBase64 = (text) =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

async function upload(file, { headers, fields, wait, signal }) {
  const metadata = Object.entries(fields).map(([name, value]) => `${name} ${inBase64(value)}`)
  const begun = await fetch('tus', {
    method: 'POST',
    headers: { ...headers, ...TUS, 'Upload-Length': file.size, 'Upload-Metadata': metadata.join() },
    signal,
  })
  if (begun.status !== 201) throw toProblem(begun.status, await begun.text(), 'file')
  const path = `tus/${begun.headers.get('Location').split('/').at(-1)}`
  const giveUp = () =>
    fetch(path, { method: 'DELETE', headers: { ...headers, ...TUS }, keepalive: true }).catch(() => {})
  signal.addEventListener('abort', giveUp)
  let offset = 0
  for (let failures = 0; ; ) {
    const answer = await sendPiece(path, file, offset, { headers, wait, signal })
    const result = answer.getResponseHeader('X-Media')
    if (result) {
      signal.removeEventListener('abort', giveUp)
      return { result: JSON.parse(result), state: answer.getResponseHeader('X-Media-State') }
    }
    if (answer.status >= 400 && !COMES_BACK.includes(answer.status)) {
      throw toProblem(answer.status, answer.responseText, 'file')
    }
    if (failures === TIME_LIMITS.length) throw toProblem(answer.status, answer.responseText, 'file')
    report('Connection lost, retrying', undefined)
    await pause(TIME_LIMITS[failures++], signal)
    const found = await fetch(path, { method: 'HEAD', headers: { ...headers, ...TUS }, signal }).catch(() => undefined)
    if (found?.headers.get('X-Media')) {
      return { result: JSON.parse(found.headers.get('X-Media')), state: found.headers.get('X-Media-State') }
    }
    const reached = Number(found?.headers.get('Upload-Offset') ?? offset)
    if (reached > offset) failures = 0
    offset = reached
  }
}

/** Resolves with the finished request; status 0 means no answer. */
function sendPiece(path, file, offset, { headers, wait, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    const abort = () => {
      request.abort()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort)
    request.upload.onprogress = ({ loaded }) => {
      const sent = offset + loaded
      if (sent < file.size) {
        report('Uploading', sent / file.size, `${inMegabytes(sent)} of ${inMegabytes(file.size)} MB`)
      } else report('Checking the file', undefined)
    }
    request.onloadend = () => {
      signal.removeEventListener('abort', abort)
      resolve(request)
    }
    request.open('PATCH', path)
    const all = {
      ...headers,
      ...TUS,
      ...wait,
      'Upload-Offset': offset,
      'Content-Type': 'application/offset+octet-stream',
    }
    for (const [name, value] of Object.entries(all)) request.setRequestHeader(name, value)
    request.send(file.slice(offset))
  })
}

// Import of a URL.

async function importFrom(source, { headers, fields, wait, signal }) {
  report('Fetching the clip', undefined)
  const {
    title,
    tags,
    nsfw,
    mute,
    sliding,
    attribution_site: site,
    attribution_user: user,
    attribution_url: url,
  } = fields
  const others = Object.fromEntries([...EDITS, ...ACCESS].map((name) => [name, fields[name]]))
  const attribution = site || user || url ? { site, user, url } : undefined
  const list = tags?.split(',')
  const answer = await fetch('media/import', {
    method: 'POST',
    headers: { ...headers, ...wait, 'Content-Type': 'application/json' },
    // An unticked box is not sent: otherwise it would override the site's own rating.
    body: JSON.stringify({
      source,
      title,
      tags: list,
      ...others,
      ...(mute && { mute: true }),
      ...(sliding && { sliding: true }),
      ...(nsfw && { nsfw: true }),
      attribution,
    }),
    signal,
  })
  if (answer.status !== 201) throw toProblem(answer.status, await answer.text(), 'source')
  return { result: (await answer.json()).success, state: answer.headers.get('X-Media-State') }
}

// Wait until the clip is ready.

async function waitUntilReady({ page, files }, { headers, signal }, what) {
  const id = new URL(page).pathname.split('/').at(-1)
  report(MAKING, undefined)
  while (!signal.aborted) {
    const answer = await fetch(`media/${id}/events`, { headers, signal }).catch(() => undefined)
    signal.throwIfAborted()
    if (answer?.status === 200) {
      if (await followEvents(answer.body, what)) return
    } else if (answer && (await isThere(files.gif, signal))) return
    await pause(2_000, signal)
  }
}

/** True when the clip is ready, false when the connection ends first. EventSource cannot send the token. */
async function followEvents(body, what) {
  let text = ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { value, done } = await reader.read().catch(() => ({ done: true }))
    if (done) return false
    text += value
    const events = text.split('\n\n')
    text = events.pop()
    for (const event of events) {
      const [, data] = /^data: (.*)$/m.exec(event) ?? []
      if (!data) continue
      const { state, progress, failure } = JSON.parse(data)
      // A file that is stored before the others.
      if (!state) continue
      if (state === 'ready') return true
      if (state === 'failed') throw new Problem(failure?.message ?? 'The clip could not be made.', what)
      if (state === 'deleted') throw new Problem('The clip was deleted meanwhile.')
      report(MAKING, progress || undefined, progress ? `${Math.round(progress * 100)} %` : '')
    }
  }
}

/** Addresses of a private clip; its own show nothing. */
async function linkTo(result, { headers, signal }) {
  const id = result.page.split('/').at(-1)
  const answer = await fetch(`media/${id}/links`, { method: 'POST', headers, signal })
  if (answer.status !== 200) throw toProblem(answer.status, await answer.text())
  const { url, files, embed } = (await answer.json()).success
  return { ...result, page: url, files, embed }
}

/** Checks the GIF at its address, which is never stored before the others, for a token without the scope `read`. */
async function isThere(gif, signal) {
  const asked = { method: 'HEAD', cache: 'no-store', redirect: 'manual', signal }
  const { status, type } = await fetch(`f/${gif.split('/').at(-1)}`, asked)
  if (status >= 400 && status !== 429 && status < 500) throw new Problem('The clip could not be made.')
  // Only existing files are redirected to a CDN, which this page may not call.
  return status === 200 || type === 'opaqueredirect'
}

function showResult({ page, files, embed, meta }) {
  $('facts').replaceChildren(
    ...[`${meta.width} × ${meta.height}`, meta.duration.replace(/s$/, ' s')].map((text) => withText('span', text)),
  )
  const links = [['Page', page], ...['gif', 'mp4', 'webm', 'jpg'].map((kind) => [kind.toUpperCase(), files[kind]])]
  $('links').replaceChildren(
    ...links.map(([name, url]) => {
      const link = withText('a', url.replace(/^https?:\/\//, ''))
      Object.assign(link, { href: url, ariaLabel: `${name}: ${url}` })
      const copy = withText('button', 'Copy')
      Object.assign(copy, { type: 'button', className: 'quiet', ariaLabel: `Copy the address of the ${name}` })
      copy.dataset.text = url
      const item = document.createElement('li')
      item.append(withText('span', name), link, copy)
      return item
    }),
  )
  $('embed').value = embed
  const video = $('preview')
  video.width = Number(meta.width)
  video.height = Number(meta.height)
  video.poster = files.jpg
  video.autoplay = !matchMedia('(prefers-reduced-motion: reduce)').matches
  video.replaceChildren(
    ...['webm', 'mp4'].map((kind) =>
      Object.assign(document.createElement('source'), { src: files[kind], type: `video/${kind}` }),
    ),
  )
  video.load()
  $('add').hidden = true
  $('done').hidden = false
  $('done-title').focus()
}

const withText = (name, text) => Object.assign(document.createElement(name), { textContent: text })

addEventListener('click', async ({ target }) => {
  const { copy, text } = target.dataset ?? {}
  if (!copy && !text) return
  const before = target.textContent
  try {
    await navigator.clipboard.writeText(text ?? $(copy).value)
    target.textContent = 'Copied'
    say('Copied')
  } catch {
    // Not allowed, or not https: select the text instead.
    if (copy) $(copy).select()
    say('Copy it with the keyboard')
    return
  }
  setTimeout(() => {
    target.textContent = before
  }, 2_000)
})

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
    show(error)
  } finally {
    $('work').hidden = true
    form.hidden = false
    $('step').textContent = ''
    job = undefined
  }
})
