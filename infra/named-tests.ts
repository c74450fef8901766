// Tests that a document names as proof: a file in backquotes, then titles in double quotes.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

export interface NamedTests {
  path: string
  titles: string[]
}

export function namedTests(text: string): NamedTests[] {
  const named: NamedTests[] = []
  for (const [, path, title] of text
    .replaceAll(/\s+/g, ' ')
    .matchAll(/`([\w./-]+\.test\.ts|[\w/-]+-tests\.ts)`|"([^"]+)"/g)) {
    if (path) named.push({ path, titles: [] })
    else if (title) named.at(-1)?.titles.push(title)
  }
  return named
}

/** Lists named files and titles that the repository lacks. */
export function missingTests({ path, titles }: NamedTests): string[] {
  if (!existsSync(join(ROOT, path))) return [path]
  const source = readFileSync(join(ROOT, path), 'utf8')
  return titles.filter((title) => !source.includes(title)).map((title) => `${path}: ${title}`)
}
