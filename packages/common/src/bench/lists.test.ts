import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeEach, expect, inject, onTestFinished, test, vi } from 'vitest'
import { type MeasuredList, measureLists } from './lists.ts'
import { lookInto } from './postgres.ts'
import { startReport } from './report.ts'

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => {})
})

const LIST: MeasuredList = {
  id: 'numbers',
  what: 'numbers',
  paths: ['/numbers'],
  rows: 'select generate_series(1, 60) as id',
  idsOf: (body) => JSON.parse(body),
}
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, index) => String(from + index))

/** Measures the list on a server with this answer. */
async function measured(answer: (reply: ServerResponse) => void, list = LIST): Promise<string[]> {
  const server = createServer((_request, reply) => answer(reply)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const database = lookInto(inject('databaseServerUrl'))
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await database.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return measureLists({ report: startReport('shop', []), database, base, requests: 2 }, [list])
}

const send =
  (ids: string[], headers: Record<string, string> = {}) =>
  (reply: ServerResponse) =>
    void reply.writeHead(200, headers).end(JSON.stringify(ids))

test('a page with the rows of the database is right, whatever its place', async () => {
  expect(await measured(send(numbers(1, 50)))).toEqual([])
  expect(await measured(send(numbers(51, 10)), { ...LIST, offset: 50 })).toEqual([])
  expect(await measured(send(numbers(1, 60)), { ...LIST, size: 60 })).toEqual([])
})

test.each([
  ['a missing row', numbers(1, 49)],
  ['a row too many', numbers(1, 51)],
  ['another order', numbers(1, 50).toReversed()],
  ['no row', []],
])('a page with %s is reported', async (_, ids) => {
  expect(await measured(send(ids))).toEqual(['numbers: /numbers has other rows than the database'])
})

test('a total is exact, or an estimate of more than ten thousand that says so and is at most twice or half the rows', async () => {
  const total = (rows: number, estimated = false) =>
    send(numbers(1, 50), { 'x-total-count': String(rows), ...(estimated && { 'x-total-count-estimated': 'true' }) })
  const many = { ...LIST, rows: 'select generate_series(1, 20000) as id' }
  expect(await measured(total(60))).toEqual([])
  expect(await measured(total(25_000, true), many)).toEqual([])
  expect(await measured(total(61))).toEqual(['numbers: the total is 61, estimated: false; rows: 60'])
  expect(await measured(total(60, true))).toEqual(['numbers: the total is 60, estimated: true; rows: 60'])
  for (const wrong of [9_000, 41_000]) expect(await measured(total(wrong, true), many)).toHaveLength(1)
  const more = { ...LIST, rows: 'select generate_series(1, 50000) as id' }
  expect(await measured(total(20_100, true), more)).toHaveLength(1)
})

test('refusals are reported, and never count as fast answers', async () => {
  expect(await measured((reply) => void reply.writeHead(503).end())).toEqual(['numbers: 2 of 2 answers were 503'])
})
