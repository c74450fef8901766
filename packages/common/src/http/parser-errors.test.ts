import { connect } from 'node:net'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { ApiError } from '../errors.ts'
import { openUnreadBodies } from './drain-body.ts'
import { answerClientErrors } from './parser-errors.ts'

// Fails when Node drops the private `_httpMessage` of sockets: the client would then read a 400 inside the body.
test('bytes that are no HTTP get no answer inside an answer that has begun', async () => {
  const answers = {
    common: () => new ApiError('refused', 400, 'refused', {}),
    form: () => ({ body: {} }),
  }
  const app = Fastify({ clientErrorHandler: answerClientErrors(answers, openUnreadBodies()) })
  app.get('/', (_request, reply) => {
    reply.hijack()
    reply.raw.write('the beginning')
  })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  onTestFinished(() => app.close())
  const socket = connect(Number(port), '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  let text = ''
  for await (const chunk of socket) {
    if (text === '') socket.write('no HTTP\r\n\r\n')
    text += chunk
  }
  expect(text).toContain('the beginning')
  expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1)
})
