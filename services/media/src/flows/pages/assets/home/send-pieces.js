// Sends a file in pieces (tus), which survive a bad connection, a pause and a reload.

import { text } from '../owner/page-data.js'
import { fingerprintOf, forgetUpload, keepUpload, keptUploads, LARGE_BYTES, whileInUse } from './kept-uploads.js'
import { toProblem } from './problems.js'
import { answerOf, pause, RETRY_DELAYS_MS, untilAdded } from './retry.js'
import { reportSent, request } from './send.js'

const TUS = { 'Tus-Resumable': '1.0.0' }
const COMES_BACK = [0, 409, 423, 429, 502, 503, 504]

const inBase64 = (value) =>
  btoa(Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join(''))

/** `place` remembers the address of the upload for a later call. */
export async function sendPieces(file, call) {
  if (file.size <= LARGE_BYTES) return sendRest(file, undefined, call)
  const mark = await fingerprintOf(file)
  return whileInUse(mark, () => sendRest(file, mark, call))
}

/** Sends what the service lacks; `mark` is the fingerprint of a file whose upload is kept. */
async function sendRest(file, mark, { headers, fields, wait, signal, report, place = {} }) {
  if (mark) place.path ??= keptUploads().find((each) => each.mark === mark)?.path
  let offset
  let reached = 0
  for (let failures = 0; ; ) {
    if (place.path) {
      const call = fetch(place.path, { method: 'HEAD', headers: { ...headers, ...TUS }, signal })
      const found = await answerOf(call, signal)
      if (found.header('X-Media')) return finish(place, found)
      if (found.status === 200) offset = Number(found.header('Upload-Offset'))
      else if (found.status === 404 || found.status === 410) forgetPlace(place)
      else if (!COMES_BACK.includes(found.status)) throw toProblem(found, 'file')
      if (offset > reached) failures = 0
      reached = Math.max(reached, offset ?? 0)
    }
    if (!place.path) {
      place.path = await begin(file, { headers, fields, signal, report })
      if (mark) keepUpload({ path: place.path, mark, name: file.name })
      offset = 0
    }
    if (offset !== undefined) {
      const from = offset
      offset = undefined
      const answer = await request('PATCH', place.path, {
        headers: {
          ...{ ...headers, ...TUS, ...wait },
          ...{ 'Upload-Offset': from, 'Content-Type': 'application/offset+octet-stream' },
        },
        body: file.slice(from),
        signal,
        onSent: (sent) => reportSent(report, from + sent, file.size),
      })
      if (answer.header('X-Media')) return finish(place, answer)
      if ((answer.status >= 400 && !COMES_BACK.includes(answer.status)) || failures === RETRY_DELAYS_MS.length) {
        if (![...COMES_BACK, 401].includes(answer.status)) forgetPlace(place)
        throw toProblem(answer, 'file')
      }
    } else if (failures === RETRY_DELAYS_MS.length) throw toProblem({ status: 0 })
    report(text('lost'))
    await pause(RETRY_DELAYS_MS[failures++], signal)
  }
}

async function begin(file, { headers, fields, signal, report }) {
  const metadata = Object.entries(fields).map(([name, value]) => `${name} ${inBase64(value)}`)
  const all = { ...headers, ...TUS, 'Upload-Length': file.size, 'Upload-Metadata': metadata.join() }
  const send = () => answerOf(fetch('tus', { method: 'POST', headers: all, signal }), signal)
  const { header } = await untilAdded(send, { what: 'file', report, signal })
  return `tus/${header('Location').split('/').at(-1)}`
}

function finish(place, { header }) {
  forgetPlace(place)
  return { result: JSON.parse(header('X-Media')), state: header('X-Media-State') }
}

function forgetPlace(place) {
  forgetUpload(place.path)
  place.path = undefined
}

/** Deletes an unfinished upload. */
export function discardUpload(place, headers) {
  if (!place.path) return
  fetch(place.path, { method: 'DELETE', headers: { ...headers, ...TUS }, keepalive: true }).catch(() => {})
  forgetPlace(place)
}
