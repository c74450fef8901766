// Bounds of files and folders: a source that outgrows one is divided by its subjects, a text is shortened.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const repository = resolve(import.meta.dirname, '..')
const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: repository,
  encoding: 'utf8',
})
const deleted = execFileSync('git', ['ls-files', '--deleted'], { cwd: repository, encoding: 'utf8' }).split('\n')
const paths = listed.split('\n').filter((path) => path !== '' && !deleted.includes(path))
const sources = paths.filter((path) => /\.(ts|js|mjs|css|sql)$/.test(path) && !path.endsWith('.test.ts'))

const linesOf = (path: string) => readFileSync(join(repository, path), 'utf8').trimEnd().split('\n')
const longerThan = (lines: number, among: readonly string[]) =>
  among.flatMap((path) => (linesOf(path).length > lines ? [`${path}: ${linesOf(path).length} lines`] : []))

/** One type per table of the database, without code: divided, it would only take longer to search. */
const TABLES = /^services\/\w+\/src\/db\/tables\.ts$/

test('a source has at most 300 lines', () => {
  expect(sources.length).toBeGreaterThan(500)
  const bounded = sources.filter((path) => !TABLES.test(path))
  expect(longerThan(300, bounded)).toEqual([])
})

test('biome.json has at most 150 lines, and a changelog 40', () => {
  expect(longerThan(150, ['biome.json'])).toEqual([])
  const changelogs = paths.filter((path) => basename(path) === 'CHANGELOG.md')
  expect(longerThan(40, changelogs)).toEqual([])
})

const byFolder = Map.groupBy(sources, (path) => dirname(path))

test('a folder has at most 20 sources', () => {
  // Each change of a schema adds a migration, and a released one never moves.
  const crowded = [...byFolder].filter(([folder, files]) => basename(folder) !== 'migrations' && files.length > 20)
  expect(crowded.map(([folder, { length }]) => `${folder}: ${length} sources`)).toEqual([])
})

test('a folder of sources has a file that says what it owns, in the first line', () => {
  const folders = [...byFolder].filter(([folder]) =>
    /^(packages|services)\/[\w-]+\/src\b(?!.*\/(testdata|assets))/.test(folder),
  )
  const silent = folders.filter(([, files]) => !files.some((path) => /^(\/\/|\/\*)/.test(linesOf(path)[0] ?? '')))
  expect(silent.map(([folder]) => folder)).toEqual([])
})

/** Finds lines of prose past 120 columns. Tables, code, generated parts and words without a space may be longer. */
function longLines(path: string): string[] {
  let isCode = false
  let isGenerated = false
  return linesOf(path).flatMap((line, index) => {
    if (/^\s*```/.test(line)) isCode = !isCode
    if (/^<!-- /.test(line)) isGenerated = !/^<!-- end /.test(line)
    const isProse = !isCode && !isGenerated && !/^(\s*\||\s{4})/.test(line)
    const canBreak = /\s/.test(line.trim().replace(/`[^`]*`/g, '_'))
    return isProse && canBreak && line.length > 120 ? [`${path}:${index + 1}: ${line.length} columns`] : []
  })
}

test('a line of Markdown has at most 120 columns', () => {
  const pages = paths.filter((path) => path.endsWith('.md') && !path.includes('/bench/results/'))
  expect(pages.flatMap(longLines)).toEqual([])
})

/** Beginnings of a line that is only a comment. Values of charts have some whose text becomes one cell of a table. */
const COMMENT: Record<string, RegExp> = {
  '.sql': /^\s*-- /,
  '.yml': /^\s*# /,
  '.yaml': /^\s*# /,
}
const SLASHES_OR_STARS = /^\s*(\/\/|\/\*\*?|\*) /

/** Finds comments past 120 columns, which the formatter leaves. Tables and words without a space may be longer. */
function longComments(path: string): string[] {
  const begins = COMMENT[extname(path)] ?? SLASHES_OR_STARS
  return linesOf(path).flatMap((line, index) => {
    const text = line.replace(begins, '')
    const isProse = text !== line && !/^(\||biome-ignore)/.test(text)
    const canBreak = /\s/.test(text.replace(/\s*\*\/$/, '').replace(/`[^`]*`/g, '_'))
    return isProse && canBreak && line.length > 120 ? [`${path}:${index + 1}: ${line.length} columns`] : []
  })
}

test('a line of a comment has at most 120 columns', () => {
  const commented = paths.filter((path) => /\.(ts|js|mjs|css|sql|ya?ml)$/.test(path) && path !== 'pnpm-lock.yaml')
  expect(commented.filter((path) => !/\/testdata\//.test(path)).flatMap(longComments)).toEqual([])
})
