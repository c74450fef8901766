import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { missingTests, namedTests } from './named-tests.ts'

const ROOT = join(import.meta.dirname, '..')
const lines = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8').split('\n')

/** A row of a table under the heading `section`. */
interface Row {
  section: string
  cells: string[]
}

const rows = readRows()
const isAsvs = ({ section }: Row) => section.startsWith('OWASP ASVS')
const threats = rows.filter((row) => !isAsvs(row))

/** Files that a row names, with the titles after each of them. */
const proofsOf = ({ cells, section }: Row) =>
  cells.flatMap(namedTests).map(({ path, titles }) => ({ path: pathIn(section, path), titles }))

test('every threat names a test, and what stops it', () => {
  expect(threats.length).toBeGreaterThan(80)
  for (const row of threats) {
    expect(row.cells[1]).not.toBe('')
    expect(
      proofsOf(row).flatMap(({ titles }) => titles),
      row.cells[0],
    ).not.toEqual([])
  }
})

test('every requirement says whether it is met, and how', () => {
  const requirements = rows.filter(isAsvs)
  expect(requirements.length).toBeGreaterThan(80)
  for (const { cells } of requirements) {
    expect(cells).toEqual([
      expect.stringMatching(/^\d/),
      expect.stringMatching(/^(met|partly|not met|not met by default|n\/a)$/),
      expect.stringMatching(/./),
    ])
  }
})

test('every test that SECURITY.md names is there, in the file it names', () => {
  expect(rows.flatMap(proofsOf).flatMap(missingTests)).toEqual([])
})

test('every other file that SECURITY.md names is there', () => {
  const named = lines.flatMap((line) =>
    [...line.matchAll(/`((?:\.github|services|packages|infra|docs|bench)\/[\w./-]+)`/g)].map(
      ([, path]) => path as string,
    ),
  )
  expect(named.length).toBeGreaterThan(0)
  expect(
    named.filter((path) => !['', 'services/auth', 'services/media'].some((at) => existsSync(join(ROOT, at, path)))),
  ).toEqual([])
})

/** Without the rows that only begin a table or a group of it. */
function readRows(): Row[] {
  let section = ''
  return lines.flatMap((line) => {
    section = /^## (.*)$/.exec(line)?.[1] ?? section
    const [, row] = /^\| (?!---|Threat \||Requirements \||\*\*)(.*) \|$/.exec(line) ?? []
    return row === undefined ? [] : [{ section, cells: row.split(' | ') }]
  })
}

/** In the section of a service a path is below its folder, or else below the repository. */
function pathIn(section: string, path: string): string {
  const inside = join('services', section, path)
  return existsSync(join(ROOT, inside)) ? inside : path
}
