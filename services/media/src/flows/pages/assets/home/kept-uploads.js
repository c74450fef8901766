// Uploads of large files that a reload interrupts. The tab keeps their addresses; the user chooses the file again, and
// its fingerprint leads to the upload.
const KEPT = 'media uploads'
const MOST = 50

/** Smaller files are sent again from their beginning. */
export const LARGE_BYTES = 20 * 1024 ** 2

/** Bytes of the beginning and of the end that count for the fingerprint. */
const SAMPLE_BYTES = 4_096

/** Fingerprint of name, size, last change and a few bytes. No secret: it distinguishes files of one user. */
export async function fingerprintOf(file) {
  const samples = [file.slice(0, SAMPLE_BYTES), file.slice(-SAMPLE_BYTES)]
  let hash = 0x811c9dc5
  for (const sample of samples) {
    // FNV-1a: `crypto.subtle` does not exist on plain http.
    for (const byte of new Uint8Array(await sample.arrayBuffer())) hash = Math.imul(hash ^ byte, 0x01000193)
  }
  return [file.name, file.size, file.lastModified, hash >>> 0].join('|')
}

export function keptUploads() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? '[]')
  } catch {
    return []
  }
}

/** Hears `change` when an upload is kept, forgotten, in use or no longer so. */
export const changes = new EventTarget()
const announce = () => changes.dispatchEvent(new Event('change'))

const write = (uploads) => {
  if (uploads.length > 0) sessionStorage.setItem(KEPT, JSON.stringify(uploads.slice(-MOST)))
  else sessionStorage.removeItem(KEPT)
  announce()
}

export const keepUpload = (upload) => write([...keptUploads(), upload])
export const forgetUpload = (path) => write(keptUploads().filter((each) => each.path !== path))

/** Fingerprints of the files that this page sends. */
const inUse = new Set()

/** Sends a file by `send`, during which its upload does not count as interrupted. */
export async function whileInUse(mark, send) {
  inUse.add(mark)
  announce()
  try {
    return await send()
  } finally {
    inUse.delete(mark)
    announce()
  }
}

/** Uploads that nothing on this page goes on with; `held` are addresses of rows that may go on. */
export const interruptedUploads = (held = []) =>
  keptUploads().filter(({ mark, path }) => !inUse.has(mark) && !held.includes(path))
