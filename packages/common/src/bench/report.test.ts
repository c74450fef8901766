import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { figureText } from './figure-text.ts'
import { startReport } from './report.ts'

let directory: string
const results = { json: '', md: '' }

beforeAll(async () => {
  vi.spyOn(console, 'log').mockImplementation(() => {})
  directory = await mkdtemp(join(tmpdir(), 'report-'))
  vi.stubEnv('BENCH_SHOP_USERS', '20')
  const report = startReport('shop', ['BENCH_SHOP_USERS', 'BENCH_SHOP_UNSET'])
  const sides = { against: 'bare', unit: 'a second', compared: 'ratio' } as const
  report.row({ ...sides, id: 'fast', what: 'orders & <carts>', ours: 1234, theirs: 1000, goal: { atLeast: 0.9 } })
  report.row({ ...sides, id: 'slow', what: 'refunds', ours: 496, theirs: 1000, goal: { atLeast: 0.5 } })
  report.row({ ...sides, id: 'late', what: 'invoices', ours: 130, theirs: 100, goal: { atLeast: 0.95, atMost: 1.05 } })
  report.row({ ...sides, id: 'shown', what: 'gifts', ours: 1, theirs: 2, goal: {} })
  const point = report.growth('users', { title: 'More users', axis: 'users', lines: { rate: 'orders/s' } })
  point(1_000, { rate: 70.25 })
  point(1_000_000, { rate: 68 })
  report.figure('bytes-order', { what: 'an order', unit: 'bytes', value: 1024 })
  await report.write(pathToFileURL(`${directory}/results/`), { postgres: '18.4' })
  for (const kind of ['json', 'md'] as const) {
    results[kind] = await readFile(join(directory, 'results', `latest.${kind}`), 'utf8')
  }
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
})

afterAll(() => rm(directory, { recursive: true }))

test('latest.json holds every measurement by its id', () => {
  const { rows, growth, figures, machine } = JSON.parse(results.json)
  expect(rows.map(({ id, ours, theirs }: Record<string, unknown>) => [id, ours, theirs])).toEqual([
    ['fast', 1234, 1000],
    ['slow', 496, 1000],
    ['late', 130, 100],
    ['shown', 1, 2],
  ])
  expect(growth.users.points).toEqual([
    { at: 1_000, values: { rate: 70.25 } },
    { at: 1_000_000, values: { rate: 68 } },
  ])
  expect(figures['bytes-order'].value).toBe(1024)
  expect(machine).toMatchObject({ node: process.version, postgres: '18.4', cores: expect.any(Number) })
})

test('the table shows both sides and missed goals, and compares rounded figures', () => {
  expect(results.md).toContain('| orders & <carts> | bare | 1,234 a second | 1,000 a second | 1.23 | ≥ 0.9 | yes |')
  expect(results.md).toContain('| refunds | bare | 496 a second | 1,000 a second | 0.50 | ≥ 0.5 | yes |')
  expect(results.md).toContain('| invoices | bare | 130 a second | 100 a second | 1.30 | 0.95 to 1.05 | **no** |')
  expect(results.md).toContain('| 1,000,000 | 68 |')
  expect(results.md).toContain('| an order | 1,024 bytes |')
})

test('a run changed by a variable names it', () => {
  expect(results.md).toContain('**A changed run**, by `BENCH_SHOP_USERS=20`:')
  expect(JSON.parse(results.json).shortenedBy).toEqual({ BENCH_SHOP_USERS: '20' })
})

test.each([
  [1_234_567.8, '1,234,568'],
  [12.34, '12.3'],
  [1.234, '1.23'],
  [3, '3'],
  [0.001234, '0.00123'],
  [-250.4, '-250'],
])('%d is written %s', (value, text) => expect(figureText(value)).toBe(text))
