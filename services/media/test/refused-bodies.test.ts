import { afterAll, beforeAll, expect, test } from 'vitest'
import { everyRefusal, findLostRefusal, startRefusingService } from './refused-bodies.ts'
import type { TestService } from './service.ts'

const LAST = 'GET /health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'

let service: TestService
beforeAll(async () => {
  service = await startRefusingService()
})
afterAll(() => service.close())

test.each([
  ['of HTTP/1.0', { version: '1.0', connection: '' }],
  ['that ends its connection', { version: '1.1', connection: 'Connection: close\r\n' }],
  ['that keeps its connection', { version: '1.1', connection: '', next: LAST }],
] as const)('a client %s gets each refusal of a large upload, though it sends all of it', async (_, how) => {
  for (const refusal of await everyRefusal(service)) {
    expect(await findLostRefusal(service.url, refusal, how)).toBeUndefined()
  }
})
