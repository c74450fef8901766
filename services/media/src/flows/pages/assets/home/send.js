// Adds a clip by one request: a small file as a form, or an address. Its Idempotency-Key makes a repetition safe: the
// second request gets the clip of the first. Larger files: send-pieces.js.
import { text } from '../owner/page-data.js'
import { ACCESS, EDITS } from './problems.js'
import { inMegabytes } from './progress.js'
import { answerOf, untilAdded } from './retry.js'

const added = ({ body, header }) => ({ result: JSON.parse(body).success, state: header('X-Media-State') })

export async function sendForm(file, { headers, fields, wait, signal, report, key }) {
  const send = () => {
    const body = new FormData()
    for (const [name, value] of Object.entries(fields)) body.append(name, value)
    body.append('file', file)
    const onSent = (sent) => reportSent(report, Math.min(sent, file.size), file.size)
    return request('POST', 'media/upload', {
      headers: { ...headers, ...wait, 'Idempotency-Key': key },
      body,
      signal,
      onSent,
    })
  }
  return added(await untilAdded(send, { what: 'file', report, signal }))
}

export function reportSent(report, sent, all) {
  if (sent >= all) report(text('checking'))
  else report(text('uploading'), sent / all, text('megabytesOf', { sent: inMegabytes(sent), all: inMegabytes(all) }))
}

/** Resolves with the finished request; status 0 means no answer. `fetch` does not say how many bytes were sent. */
export function request(method, path, { headers, body, signal, onSent }) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest()
    const abort = () => {
      sending.abort()
      reject(signal.reason)
    }
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort)
    sending.upload.onprogress = ({ loaded }) => onSent(loaded)
    sending.onloadend = () => {
      signal.removeEventListener('abort', abort)
      const header = (name) => sending.getResponseHeader(name)
      resolve({ status: sending.status, header, body: sending.responseText, retryAfter: header('Retry-After') })
    }
    sending.open(method, path)
    for (const [name, value] of Object.entries(headers)) sending.setRequestHeader(name, value)
    sending.send(body)
  })
}

export async function importFrom(source, { headers, fields, wait, signal, report, key }) {
  report(text('fetching'))
  const { title, tags, nsfw, mute, sliding } = fields
  const { attribution_site: site, attribution_user: user, attribution_url: url } = fields
  const others = Object.fromEntries([...EDITS, ...ACCESS].map((name) => [name, fields[name]]))
  const attribution = site || user || url ? { site, user, url } : undefined
  // An unticked box is not sent: otherwise it would override the site's own rating.
  const body = JSON.stringify({
    ...{ source, title, tags: tags?.split(','), ...others, attribution },
    ...(mute && { mute: true }),
    ...(sliding && { sliding: true }),
    ...(nsfw && { nsfw: true }),
  })
  const all = { ...headers, ...wait, 'Content-Type': 'application/json', 'Idempotency-Key': key }
  const send = () => answerOf(fetch('media/import', { method: 'POST', headers: all, body, signal }), signal)
  return added(await untilAdded(send, { what: 'source', report, signal }))
}
