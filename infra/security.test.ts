import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { missingTests, namedTests } from './named-tests.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (name: string) => readFileSync(join(ROOT, 'docs/security', name), 'utf8')

/** One threat or requirement, its lines joined, under the last `## ` heading before it. */
interface Entry {
  section: string
  title: string
  text: string
}

/** Threats stand under headings without entries of their own below them. */
const threats = entriesOf(read('threats.md'), /^#{3,4} (.*)$/).filter(({ text }) => text !== '')
const requirements = entriesOf(read('asvs.md'), /^- \*\*(\d[^*]*)\*\*/)

/** Files that an entry names, with the titles after each of them. */
const proofsOf = ({ section, text }: Entry) =>
  namedTests(text).map(({ path, titles }) => ({ path: pathIn(section, path), titles }))

test('every threat says what stops it, and names a test', () => {
  expect(threats.length).toBeGreaterThan(80)
  for (const threat of threats) {
    expect(threat.text, threat.title).toMatch(/^[^-]/)
    expect(
      proofsOf(threat).flatMap(({ titles }) => titles),
      threat.title,
    ).not.toEqual([])
  }
})

test('every requirement says whether it is met, and how', () => {
  expect(requirements.length).toBeGreaterThan(80)
  for (const { text } of requirements) {
    expect(text).toMatch(/^- \*\*\d[^*]*\*\* .*: \*\*(met|partly|not met|not met by default|n\/a)\*\*\. \S/)
  }
})

test('every test that the pages of security name is there, in the file they name', () => {
  expect([...threats, ...requirements].flatMap(proofsOf).flatMap(missingTests)).toEqual([])
})

test('every other file that the pages of security name is there', () => {
  const named = [...`${read('threats.md')}${read('asvs.md')}${read('known-gaps.md')}`.matchAll(FILE)].map(
    ([, path = '']) => path,
  )
  expect(named.length).toBeGreaterThan(0)
  expect(
    named.filter((path) => !['', 'services/auth', 'services/media'].some((at) => existsSync(join(ROOT, at, path)))),
  ).toEqual([])
})

const FILE = /`((?:\.github|services|packages|infra|docs|bench)\/[\w./-]+)`/g

/** Each entry begins with a line like `begins` and ends before the next one or a heading. */
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

/** In the section of a service a path is below its folder, or else below the repository. */
function pathIn(section: string, path: string): string {
  const inside = join('services', section, path)
  return existsSync(join(ROOT, inside)) ? inside : path
}
