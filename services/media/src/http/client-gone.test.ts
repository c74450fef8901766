import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { clientGone } from './client-gone.ts'

/** Signal for a client that disconnects at once; created before or after that. */
async function signalOf(asked: 'before' | 'after') {
  const app = Fastify()
  onTestFinished(() => app.close())
  const seen = Promise.withResolvers<AbortSignal>()
  app.get('/', async (_request, reply) => {
    const early = asked === 'before' ? clientGone(reply) : undefined
    client.destroy()
    await once(reply.raw, 'close')
    seen.resolve(early ?? clientGone(reply))
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  return seen.promise
}

test.each(['before', 'after'] as const)(
  'a client that disconnects aborts the signal, created %s that',
  async (asked) => {
    const signal = await signalOf(asked)
    expect([signal.aborted, signal.reason?.code]).toEqual([true, 'invalid_request'])
  },
)

test('a client that got its answer does not abort the signal', async () => {
  const app = Fastify()
  onTestFinished(() => app.close())
  const signals: AbortSignal[] = []
  app.get('/', async (_request, reply) => {
    signals.push(clientGone(reply))
    return 'ok'
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  await (await fetch(url, { headers: { connection: 'close' } })).text()
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
})
