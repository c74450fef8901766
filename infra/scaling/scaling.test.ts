import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { BenchResults } from '../../packages/common/src/bench/results.ts'
import { calculate, readResults, SHEET } from './sheet.ts'

const shop = {
  rows: [{ id: 'orders', ours: 80, theirs: 100 }],
  figures: { bytes: { value: 512 } },
  growth: {
    users: {
      points: [
        { at: 10, values: { rate: 7 } },
        { at: 1000, values: { rate: 5 } },
      ],
    },
  },
  machine: { cores: 2 },
} as unknown as BenchResults

const sheet = (...rows: string[]) => ['# Shop', '| Name | What | Source | Value |', ...rows].join('\n')

const results = await readResults()

test('SCALING.md has the current measured and calculated values (infra/scaling/update.ts writes them)', {
  tags: 'both-services',
}, async () => {
  const text = await readFile(SHEET, 'utf8')
  expect(calculate(text, results)).toBe(text)
})

test('every table of auth has its place in the distribution by Citus', { tags: 'both-services' }, async () => {
  const folder = new URL('../../services/auth/migrations/', import.meta.url)
  const files = await Promise.all((await readdir(folder)).map((name) => readFile(new URL(name, folder), 'utf8')))
  const tables = files.flatMap((sql) => [...sql.matchAll(/^create (?:unlogged )?table \{\{prefix}}(\w+)/gm)])
  const [, distribution = ''] = (await readFile(SHEET, 'utf8')).split('### Citus: by `user_id`')
  const [places = ''] = distribution.split('\n\n| ')
  expect(tables.map(([, name = '']) => name).filter((name) => !places.includes(`\`${name}\``))).toEqual([])
})

test('a value comes from the results or a formula of values above; other rows are assumptions', () => {
  const text = sheet(
    '| `users` | users | assumed | 3,000 |',
    '| `share` | of them | assumed | 0.125 |',
    '| `bytes` | bytes of one | `shop figures.bytes` | ? |',
    '| `cores` | cores | `shop machine.cores` | ? |',
    '| `rate` | a second, at the most users | `shop growth.users.last.rate` | ? |',
    '| `bare` | a second, bare | `shop rows.orders.theirs` | ? |',
    '| `disk` | MB | `= users * bytes / 1e6` | 0 |',
    '| `machines` | machines | `= max(1, ceil(users / rate / bare / cores))` | 0 |',
  )
  expect(
    calculate(text, { shop })
      .match(/[^ ]+(?= \|$)/gm)
      ?.slice(1),
  ).toEqual(['3,000', '0.125', '512', '2', '5', '100', '1.54', '3'])
  expect(calculate(text, { shop }, { users: 6_000 })).toContain('| 6,000 (given) |')
  expect(calculate(text, { shop }, { users: 6_000 })).toContain('| 3.07 |')
})

test.each([
  ['a name that is nowhere', '| `disk` | MB | `= userz * 2` | 0 |', /userz is not defined/],
  [
    'a figure that was not measured',
    '| `bytes` | bytes | `shop figures.weight` | 0 |',
    /nothing was measured under figures.weight/,
  ],
  ['a service without results', '| `bytes` | bytes | `bank figures.bytes` | 0 |', /no results of bank/],
  ['an assumption without a number', '| `users` | users | assumed | many |', /users has no value/],
])('%s is an error', (_what, row, message) => expect(() => calculate(sheet(row), { shop })).toThrow(message))
