// Files that serve contributors and CI rather than a service.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..')
const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8')

test.each(readdirSync(join(root, '.ci')))(
  '.ci/%s names no host: packages come from the sources of the machine',
  (name) => {
    const hosts = [...read('.ci', name).matchAll(/https?:\/\/([^/\s"'$:]+)/g)].map(([, host]) => host)
    expect(hosts.filter((host) => host !== '127.0.0.1' && host !== 'localhost')).toEqual([])
  },
)

const FORMS = readdirSync(join(root, '.github/ISSUE_TEMPLATE')).filter((name) => name !== 'config.yml')

test.each(FORMS)('the form %s asks in English for named parts, some of them required', (name) => {
  const { body, ...head } = parse(read('.github/ISSUE_TEMPLATE', name))
  expect(head).toEqual({ name: expect.any(String), description: expect.any(String), labels: [expect.any(String)] })
  const asked = body.filter(({ type }: { type: string }) => type !== 'markdown')
  const ids = asked.map(({ id }: { id: string }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { attributes } of asked) expect(attributes.label).toMatch(/^[A-Z]/)
  expect(asked.some(({ validations }: { validations?: { required: boolean } }) => validations?.required)).toBe(true)
})

test('editors format like the formatter', () => {
  const { formatter } = JSON.parse(read('biome.json'))
  const settings = read('.editorconfig')
  expect(settings).toContain(`indent_style = ${formatter.indentStyle}`)
  expect(settings).toContain(`indent_size = ${formatter.indentWidth}`)
  expect(settings).toContain(`max_line_length = ${formatter.lineWidth}`)
})
