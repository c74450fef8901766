import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'

let copies = 0

/** Makes a file of other bytes with the same pictures; the service keeps the results of the same bytes. */
export async function newCopy(directory: string, plain: string): Promise<string> {
  const path = join(directory, `new-${copies++}${extname(plain)}`)
  const bytes = await readFile(plain)
  const ending = { '.mp4': freeBox, '.webm': voidElement, '.gif': () => randomBytes(16) }[extname(plain)]
  await writeFile(path, Buffer.concat([bytes, ending?.() ?? Buffer.alloc(0)]))
  return path
}

/** A box that players skip (ISO/IEC 14496-12 8.1.2). */
function freeBox(): Buffer {
  return Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('free'), randomBytes(16)])
}

/** An element that players skip in Matroska (RFC 8794, 11.3.2). */
function voidElement(): Buffer {
  return Buffer.concat([Buffer.from([0xec, 0x90]), randomBytes(16)])
}
