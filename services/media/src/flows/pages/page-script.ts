import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** Reads a script; its path changes with its text, so that no cache serves an old one. */
export function readScript(name: string): { text: string; path: string } {
  const text = readFileSync(new URL(`assets/${name}`, import.meta.url), 'utf8')
  return { text, path: `/${name}?v=${createHash('sha256').update(text).digest('hex').slice(0, 12)}` }
}
