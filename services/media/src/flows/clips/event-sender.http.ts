// Number, ends and headers of event streams: those of one clip (events.routes.ts) and of all (live/).
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSemaphore } from '@services/common/concurrency/semaphore'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { busy } from '../../errors.ts'
import { clientGone } from '../../http/client-gone.ts'

/** Each stream holds a connection. */
const STREAMS = { atOnce: 500, waiting: 0, waitMs: 0, perKey: { atOnce: 16, waiting: 0 } }

/** Longest stream; the client reconnects. */
const LONGEST_MS = 3_600_000

/** First block: delay before a client reconnects. */
export const RETRY = 'retry: 2000\n\n'

export const EventStream = (description: string) =>
  Type.Unsafe<Readable>({ description, content: { 'text/event-stream': { schema: Type.String() } } })

interface Ending {
  /** Aborts with the client, the longest time, a stop of the process, or `end`. */
  signal: AbortSignal
  end: () => void
}

/** Sends streams of the routes of `app`, a limited number at once, and ends them when it closes. */
export function createEventSender(app: FastifyInstance, deps: Pick<Deps, 'stopping'>) {
  const streams = createSemaphore(STREAMS, busy)
  const closing = new AbortController()
  app.addHook('preClose', async () => closing.abort())

  return {
    /** Throws queue_full and busy. `begin` returns the blocks, which end soon after the signal. */
    send: async (
      reply: FastifyReply,
      key: string,
      begin: (ending: Ending) => AsyncGenerator<string> | Promise<AsyncGenerator<string>>,
    ): Promise<FastifyReply> => {
      streams.refuseWhenFull(key)
      const ended = new AbortController()
      const end = () => ended.abort()
      const signal = AbortSignal.any([clientGone(reply), deps.stopping, closing.signal, ended.signal])
      const { promise: isClosed, resolve: close } = Promise.withResolvers<void>()
      void streams.run(() => isClosed, { key })
      const timer = setTimeout(end, LONGEST_MS)
      isClosed.then(() => {
        clearTimeout(timer)
        end()
      })
      try {
        const stream = Readable.from(await begin({ signal, end }))
        stream.once('close', close)
        // Without the header some proxies buffer the stream.
        return reply.headers({ 'x-accel-buffering': 'no' }).type('text/event-stream; charset=utf-8').send(stream)
      } catch (error) {
        close()
        throw error
      }
    },
  }
}

/** Returns false when the time ended first. */
export async function isWoken(ms: number, ...signals: AbortSignal[]): Promise<boolean> {
  return sleep(ms, false, { signal: AbortSignal.any(signals) }).catch(() => true)
}
