import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { missingTests, namedTests } from './named-tests.ts'

const document = readFileSync(join(import.meta.dirname, '../docs/addresses.md'), 'utf8').replaceAll(
  '`addresses`',
  '`test/addresses.test.ts`',
)
const steps = [...document.matchAll(/^\| (none|claimed|pending|assumed|proven) \| (\w+) \| .* \|$/gm)]

const proofsOf = (text: string) =>
  namedTests(text).map(({ path, titles }) => ({ path: `services/auth/${path}`, titles }))

test('every transition of an address names its test', () => {
  expect(steps.length).toBeGreaterThan(15)
  for (const [row] of steps)
    expect(
      proofsOf(row).flatMap(({ titles }) => titles),
      row,
    ).not.toEqual([])
})

test('every test that the states of an address name exists in its file', () => {
  expect(proofsOf(document).flatMap(missingTests)).toEqual([])
})
