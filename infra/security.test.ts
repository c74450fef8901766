import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { missingTests, namedTests } from './named-tests.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (name: string) => readFileSync(join(ROOT, 'docs/security', name), 'utf8')

/** A threat or requirement, in one line, with its section. */
interface Entry {
  section: string
  title: string
  text: string
}

/** Threats are the headings without headings below them. */
const threats = entriesOf(read('threats.md'), /^#{3,4} (.*)$/).filter(({ text }) => text !== '')
const requirements = entriesOf(read('asvs.md'), /^- \*\*(\d[^*]*)\*\*/)

/** Files that an entry names, with their titles. */
const proofsOf = ({ section, text }: Entry) =>
  namedTests(text).map(({ path, titles }) => ({ path: pathIn(section, path), titles }))

test('every threat names its defence and a test', () => {
  expect(threats.length).toBeGreaterThan(80)
  for (const threat of threats) {
    expect(threat.text, threat.title).toMatch(/^[^-]/)
    expect(
      proofsOf(threat).flatMap(({ titles }) => titles),
      threat.title,
    ).not.toEqual([])
  }
})

test('every requirement states whether and how it is met', () => {
  expect(requirements.length).toBeGreaterThan(80)
  for (const { text } of requirements) {
    expect(text).toMatch(/^- \*\*\d[^*]*\*\* .*: \*\*(met|partly|not met|not met by default|n\/a)\*\*\. \S/)
  }
})

test('every test that the security pages name exists in its file', () => {
  expect([...threats, ...requirements].flatMap(proofsOf).flatMap(missingTests)).toEqual([])
})

test('every other file that the security pages name exists', () => {
  const named = [...`${read('threats.md')}${read('asvs.md')}${read('known-gaps.md')}`.matchAll(FILE)].map(
    ([, path = '']) => path,
  )
  expect(named.length).toBeGreaterThan(0)
  expect(
    named.filter((path) => !['', 'services/auth', 'services/media'].some((at) => existsSync(join(ROOT, at, path)))),
  ).toEqual([])
})

const FILE = /`((?:\.github|services|packages|infra|docs|bench)\/[\w./-]+)`/g

/** Splits a page: an entry begins at a line like `begins` and ends before the next one or a heading. */
function entriesOf(page: string, begins: RegExp): Entry[] {
  let section = ''
  let open: Entry | undefined
  const found: Entry[] = []
  for (const line of page.split('\n')) {
    section = /^## (.*)$/.exec(line)?.[1] ?? section
    const title = begins.exec(line)?.[1]
    if (title !== undefined) {
      open = { section, title, text: '' }
      found.push(open)
    } else if (line.startsWith('#')) open = undefined
    if (open && !line.startsWith('#')) open.text = `${open.text} ${line.trim()}`.trim()
  }
  return found
}

/** Resolves a path below the folder of its section's service, or below the repository. */
function pathIn(section: string, path: string): string {
  const inside = join('services', section, path)
  return existsSync(join(ROOT, inside)) ? inside : path
}
