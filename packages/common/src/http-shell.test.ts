import { once } from 'node:events'
import { connect } from 'node:net'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { type ErrorAnswers, installErrorHandler } from './error-handler.ts'
import { ApiError } from './errors.ts'
import { endSlowBodies } from './http-shell.ts'

const answers: ErrorAnswers = {
  common: (failure, _detail, cause) => new ApiError(failure, 400, failure, { cause }),
  form: ({ code }) => ({ body: { code } }),
}

test('a body that does not arrive is answered once, and the connection ends; what arrived in time is not touched', async () => {
  const lines: string[] = []
  const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(line) } } })
  installErrorHandler(app, answers)
  endSlowBodies(app, 50, () => new ApiError('too_slow', 408, 'too slow', {}))
  const gate = Promise.withResolvers<void>()
  app.post('/', async () => {
    await gate.promise
    return { code: 'fine' }
  })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  onTestFinished(() => app.close())

  const inTime = fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json' },
  })
  const socket = connect(Number(port), '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{')
  await once(socket, 'close')
  expect(text).toMatch(/^HTTP\/1.1 408 [\s\S]*{"code":"too_slow"}$/)
  gate.resolve()
  expect(await (await inTime).json()).toEqual({ code: 'fine' })
  expect(lines).toEqual([])
})
