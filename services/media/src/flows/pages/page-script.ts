import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A script of ours: its text and a name that changes with it, so that no cache goes on with an older one. */
export function readScript(name: string): { text: string; path: string } {
  const text = readFileSync(new URL(`assets/${name}`, import.meta.url), 'utf8')
  return { text, path: `/${name}?v=${createHash('sha256').update(text).digest('hex').slice(0, 12)}` }
}
