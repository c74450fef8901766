import { expect, onTestFinished, test } from 'vitest'
import { everyRefusal, findLostRefusal, startRefusingService } from './refused-bodies.ts'
import type { TestService } from './service.ts'
import { documentedLocations, startNginx } from './upstreams/nginx.ts'

const asItComes = async ({ url }: TestService) => `location / { proxy_pass ${url}; client_max_body_size 160m; }`
const unbuffered = async ({ url }: TestService) =>
  `location / { proxy_pass ${url}; client_max_body_size 160m; proxy_request_buffering off; }`

const ROUNDS = 20
const close = { version: '1.1', connection: 'Connection: close\r\n' } as const

// 100 of 24 MB each: one lost now and then is what users saw.
test.each([
  ['by the documented recipe', documentedLocations],
  ['as it comes', asItComes],
  ['as it comes, passing uploads on as they arrive', unbuffered],
] as const)('nginx %s passes on every refusal of a large upload', { tags: 'nginx' }, async (_, locations) => {
  const service = await startRefusingService()
  onTestFinished(() => service.close())
  const front = await startNginx(await locations(service))
  const refusals = await everyRefusal(service)
  const lost: object[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const found = await Promise.all(refusals.map((refusal) => findLostRefusal(front, refusal, close)))
    lost.push(...found.filter((each) => each !== undefined))
  }
  expect(lost).toEqual([])
})
