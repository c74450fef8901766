// Sends a clip: a file in pieces (tus), which survive a bad connection, or the URL of one.
import { ACCESS, EDITS, toProblem } from './problems.js'
import { inMegabytes, pause, report } from './progress.js'

const TUS = { 'Tus-Resumable': '1.0.0' }
const RETRY_DELAYS_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000]
const COMES_BACK = [409, 423, 429, 502, 503, 504]

const inBase64 = (text) =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

export async function upload(file, { headers, fields, wait, signal }) {
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
    if (failures === RETRY_DELAYS_MS.length) throw toProblem(answer.status, answer.responseText, 'file')
    report('Connection lost, retrying', undefined)
    await pause(RETRY_DELAYS_MS[failures++], signal)
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

export async function importFrom(source, { headers, fields, wait, signal }) {
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
