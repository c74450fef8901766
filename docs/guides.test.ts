import { existsSync, readdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf, GUIDES, isToBeRun, readGuide } from './testing/guide.ts'

/** Pages beside the guides: the index itself, and pages without commands. */
const OTHER_PAGES = ['README.md', 'design.md', 'style.md']
const guides = readdirSync(GUIDES).filter((name) => name.endsWith('.md') && !OTHER_PAGES.includes(name))
const pages = [
  ...['design.md', 'style.md'],
  ...['contract', 'explanation', 'reference', 'security', 'specification'].flatMap(pagesBelow),
]

test('the index names every guide and every page', () => {
  const index = readGuide('README.md')
  expect([...guides, ...pages].filter((name) => !index.includes(`(${name})`))).toEqual([])
})

test.each(guides)('a test runs every command of %s', (name) => {
  const blocks = blocksOf(readGuide(name)).filter(isToBeRun)
  const tests = join(GUIDES, name.replace(/\.md$/, '.test.ts'))
  if (blocks.length > 0) expect(readGuide(tests.slice(GUIDES.length))).toContain('expect(guide.untaken()).toEqual([])')
})

const READMES = ['../README.md', '../services/auth/README.md', '../services/media/README.md'].filter((name) =>
  existsSync(join(GUIDES, name)),
)

test.each([...guides, ...pages, 'README.md', ...READMES, '../CONTRIBUTING.md', '../SECURITY.md'])(
  'links of %s lead somewhere',
  (name) => {
    const markdown = readGuide(name).replaceAll(/```[\s\S]*?```/g, '')
    const targets = [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string)
    const broken = targets.filter((target) => !/^https?:/.test(target) && !leadsSomewhere(name, target))
    expect(broken).toEqual([])
  },
)

test('pictures are small enough to be read over a slow line', async () => {
  const folder = join(GUIDES, 'screenshots')
  for (const name of readdirSync(folder)) expect((await stat(join(folder, name))).size).toBeLessThan(200_000)
})

function pagesBelow(folder: string): string[] {
  if (!existsSync(join(GUIDES, folder))) return []
  const names = readdirSync(join(GUIDES, folder), { recursive: true, encoding: 'utf8' })
  return names.filter((name) => name.endsWith('.md')).map((name) => join(folder, name))
}

function leadsSomewhere(from: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? from : join(dirname(from), path)
  if (!existsSync(join(GUIDES, file))) return false
  return anchor === undefined || anchorsOf(readGuide(file)).includes(anchor)
}

/** Anchors of the headings, by GitHub's rules. */
const anchorsOf = (markdown: string) =>
  [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
