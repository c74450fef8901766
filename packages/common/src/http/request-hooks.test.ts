import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import Fastify, { LogController } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ApiError } from '../errors.ts'
import { say } from '../testing/http/raw-http.ts'
import type { ErrorAnswers } from './error-answers.ts'
import { installErrorHandler } from './error-handler.ts'
import { answerInTurn, endSlowBodies, logRequests } from './request-hooks.ts'

const answers: ErrorAnswers = {
  common: (failure, _detail, cause) => new ApiError(failure, 400, failure, { cause }),
  form: ({ code }) => ({ body: { code } }),
}

test('a body that does not arrive is refused once and ends the connection; one in time is accepted', async () => {
  const lines: string[] = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(line) } } })
  installErrorHandler(app, answers)
  endSlowBodies(app, 50, () => new ApiError('too_slow', 408, 'too slow', {}))
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  app.post('/', async () => {
    begun.resolve()
    await gate.promise
    return { code: 'fine' }
  })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  onTestFinished(() => app.close())

  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
  // Head and body are one write, so that no time can pass in between.
  const inTime = say(Number(port), `${head}Connection: close\r\nContent-Length: 2\r\n\r\n{}`)
  await begun.promise
  const socket = connect(Number(port), '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.write(`${head}Content-Length: 9\r\n\r\n{`)
  await once(socket, 'close')
  expect(text).toMatch(/^HTTP\/1.1 408 [\s\S]*{"code":"too_slow"}$/)
  gate.resolve()
  expect(JSON.parse((await inTime).body)).toEqual({ code: 'fine' })
  expect(lines).toEqual([])
})

test('a request is logged with its own method and the pattern of its route, whatever other methods that takes', async () => {
  const lines: string[] = []
  const stream = { write: (line: string) => lines.push(line) }
  const logController = new LogController({ disableRequestLogging: true })
  const app = Fastify({ logController, logger: { level: 'info', stream } })
  logRequests(app)
  app.route({ method: ['GET', 'HEAD'], url: '/f/:id', exposeHeadRoute: false, handler: async () => '' })
  for (const [method, url] of [
    ['GET', '/f/1'],
    ['HEAD', '/f/2'],
    ['POST', '/nowhere'],
  ] as const)
    await app.inject({ method, url })
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { method: 'GET', route: '/f/:id', status: 200 },
    { method: 'HEAD', route: '/f/:id', status: 200 },
    { method: 'POST', route: 'unknown', status: 404 },
  ])
})

describe('pipelined requests', () => {
  /**
   * Counts how many requests are worked on at once; each takes a while, and the first ones longest. None ends before
   * all `connections` have one.
   */
  async function slowServer(connections: number) {
    const app = Fastify()
    answerInTurn(app)
    const seen = { now: 0, atMost: 0, all: 0 }
    const allCame = Promise.withResolvers<void>()
    app.get('/:number', async ({ params }) => {
      seen.all++
      seen.atMost = Math.max(seen.atMost, ++seen.now)
      if (seen.now === connections) allCame.resolve()
      await allCame.promise
      const { number } = params as { number: string }
      await setTimeout(20 - Number(number))
      seen.now--
      return { number }
    })
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    onTestFinished(() => app.close())
    return { seen, port: Number(port) }
  }
  const requests = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      const last = index === count - 1 ? 'Connection: close\r\n' : ''
      return `GET /${index} HTTP/1.1\r\nHost: a\r\n${last}\r\n`
    }).join('')

  test('are handled one at a time, in order, in parallel to other connections', async () => {
    const { seen, port } = await slowServer(2)
    const [one, two] = await Promise.all([say(port, requests(17)), say(port, requests(2))])
    expect([one.answers, two.answers, seen]).toEqual([17, 2, { now: 0, atMost: 2, all: 19 }])
    const numbers = [...`${one.head}${one.body}`.matchAll(/"number":"(\d+)"/g)].map(([, number]) => Number(number))
    expect(numbers).toEqual(Array.from({ length: 17 }, (_, index) => index))
  })

  test('end the connection when there are more than sixteen', async () => {
    const { seen, port } = await slowServer(1)
    expect(await say(port, requests(18))).toMatchObject({ answers: 0 })
    await expect.poll(() => seen).toEqual({ now: 0, atMost: 1, all: 1 })
    expect(await say(port, requests(1))).toMatchObject({ status: 200 })
  })
})
