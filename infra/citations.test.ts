// Comments and documents cite sections: `contract/auth-core.md 9.2`, `design.md 5.2`. A citation leads to a heading, or
// to a numbered item under it, that is there.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const repository = resolve(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(repository, path), 'utf8')

const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: repository,
  encoding: 'utf8',
})
const paths = listed.split('\n').filter((path) => /\.(ts|mjs|js|css|md|yaml|yml|Dockerfile)$/.test(path))
const files = paths.filter((path) => existsSync(join(repository, path)) && !path.startsWith('infra/citations'))

const DOCUMENT = /(?:docs\/)?((?:contract|specification|explanation|reference)\/[\w/-]+\.md|design\.md)/
/** `5.9`, `3.1 to 3.3`, `4.2, 4.3`, `5.4 and 5.9`, `18, BUG4`; a word between says what the number is. */
const PLACES = /,?(?: section| sections)? (\d+(?:\.\d+)*(?:(?:,| and| to|, and) (?:\d+(?:\.\d+)*|[A-Z]+\d+)\b)*)/
const CITATION = new RegExp(`\\b${DOCUMENT.source}${PLACES.source}`, 'g')

interface Citation {
  from: string
  document: string
  place: string
}

/** Lines of a comment are joined, because a citation may go on in the next one. */
function citationsOf(path: string): Citation[] {
  const text = read(path).replaceAll(/\s*\n\s*(?:\*|\/\/|#)?\s*/g, ' ')
  return [...text.matchAll(CITATION)].flatMap(([, document = '', places = '']) =>
    [...places.matchAll(/\d+(?:\.\d+)*|[A-Z]+\d+/g)].map(([place]) => ({ from: path, document, place })),
  )
}

const citations = files.flatMap(citationsOf)

/**
 * Numbers of headings (`### 4.6 Limits`), of numbered items below them (`5.2`), and names of rows and items (`BUG4`).
 */
function placesIn(document: string): Set<string> {
  const places = new Set<string>()
  if (!existsSync(join(repository, 'docs', document))) return places
  let section = ''
  for (const line of read(`docs/${document}`).split('\n')) {
    const heading = /^#{2,5} (\d+(?:\.\d+)*)\.?\s/.exec(line)?.[1]
    section = heading ?? (line.startsWith('#') ? '' : section)
    const item = /^(\d+)\. /.exec(line)?.[1]
    if (section) places.add(section)
    if (section && item) places.add(`${section}.${item}`)
    for (const [, name = ''] of line.matchAll(/^(?:\| |- |#{2,5} |\*\*|\| \*\*|- \*\*)((?:BUG|D)\d+)\b/g))
      places.add(name)
  }
  return places
}

test('comments cite the design and the contracts', () => {
  expect(citations.length).toBeGreaterThan(100)
})

describe.each([...new Set(citations.map(({ document }) => document))].sort())('docs/%s', (document) => {
  test('has every section that is cited', () => {
    const places = placesIn(document)
    const missing = citations.filter((each) => each.document === document && !places.has(each.place))
    expect(missing.map(({ from, place }) => `${from}: ${place}`)).toEqual([])
  })
})

test('no document is cited that is not in the repository', () => {
  const named = files.flatMap((path) =>
    [...read(path).matchAll(/(?<![\w/.-])(?:docs\/)?((?:contract|findings|spec)\/[\w-]+\.md)/g)].map(
      ([, name = '']) => ({ path, name }),
    ),
  )
  const missing = named.filter(
    ({ path, name }) => !['docs', join(path, '..')].some((at) => existsSync(join(repository, at, name))),
  )
  expect(missing.map(({ path, name }) => `${path}: ${name}`)).toEqual([])
})
