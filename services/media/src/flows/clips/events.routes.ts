import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { createClipWatch } from '../../core/clips/clip-watch.ts'
import { type ClipState, ownerState } from '../../core/clips/clips.store.ts'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import { allows } from '../../core/tokens/scopes.ts'
import type { Deps } from '../../deps.ts'
import { errorCatalogue } from '../../errors.ts'
import { requireToken, tokenOf } from '../../http/authenticate.ts'
import { counted, errorResponses, tokenRoute } from '../../http/shapes.ts'
import { createEventSender, EventStream, isWoken, RETRY } from './event-sender.http.ts'

export const eventRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const watch = createClipWatch(deps)
  const sender = createEventSender(app, deps)

  requireToken(app, deps, { scope: 'read' })
  app.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
  app.get<{ Params: { id: string } }>(
    '/media/:id/events',
    {
      // HEAD of a stream would have to wait for its end.
      exposeHeadRoute: false,
      schema: {
        ...tokenRoute(
          'media',
          'watchMedia',
          'State and progress as server-sent events, until the clip is ready, failed, hidden or deleted',
        ),
        params: Type.Object({ id: Type.String() }),
        headers: Type.Object({
          'last-event-id': Type.Optional(Type.String({ description: 'After the final event the answer is 204.' })),
        }),
        response: {
          200: counted(
            EventStream(
              'Events `processing`, `ready`, `failed`, `hidden`, `deleted`; data is JSON: state, progress, failure. `file` says ' +
                'that one is stored before the rest: file, bytes.',
            ),
          ),
          204: counted(Type.Null()),
          ...errorResponses(401, 403, 404, 410, 429),
        },
      },
    },
    async (request, reply) => {
      const token = tokenOf(request)
      const clip = await findOwnClip(deps, token, request.params.id)
      // EventSource reconnects after every end, except after a 204.
      const first = { ...clip, state: ownerState(clip) }
      if (isFinal(first) && request.headers['last-event-id'] === first.state) return reply.code(204).send()
      return sender.send(reply, token.id, ({ signal, end }) => {
        const subscribe = (onState: (state: ClipState) => void) => {
          const isOwn = clip.tokenId === token.id
          const unsubscribe = watch.watch(clip.id, {
            tokenId: token.id,
            mayWatch: (rights) => allows(rights, isOwn ? 'read' : 'admin'),
            onState,
            onRefusal: end,
          })
          // First files and the decision are sent at once, not with the next read.
          void (async () => {
            const change = await deps.sourceWaiters.wait(clip.sourceId, signal, 'showable')
            if (change) await watch.refresh(clip.id)
            if (change?.state === 'processing' && (await deps.sourceWaiters.wait(clip.sourceId, signal)))
              await watch.refresh(clip.id)
          })()
          return unsubscribe
        }
        return streamStates(first, subscribe, { heartbeatMs: deps.timeLimits.heartbeatMs, signal })
      })
    },
  )
}

const isFinal = ({ state }: Pick<ClipState, 'state'>): boolean => state !== 'processing'

/**
 * Server-sent events of a clip: its state and each change. A comment after each idle `heartbeatMs` keeps proxies from
 * closing the connection and finds dead ones. Ends with the final state or when `signal` aborts. A slow reader skips
 * states in between, but not the final one, because only the newest is kept.
 */
async function* streamStates(
  first: ClipState,
  subscribe: (onState: (state: ClipState) => void) => () => void,
  { heartbeatMs, signal }: { heartbeatMs: number; signal: AbortSignal },
): AsyncGenerator<string> {
  let newest = first
  let wake = new AbortController()
  const unsubscribe = subscribe((state) => {
    if (isFinal(newest) || isSame(state, newest)) return
    newest = state
    wake.abort()
  })
  try {
    yield RETRY
    const sentFiles = new Set<string>()
    for (let sent: ClipState | undefined; !signal.aborted; ) {
      if (newest !== sent) {
        wake = new AbortController()
        sent = newest
        for (const file of sent.files ?? []) {
          if (!sentFiles.has(file.kind)) yield toFileEvent(file)
          sentFiles.add(file.kind)
        }
        yield toEvent(sent)
        if (isFinal(sent)) return
      } else if (!(await isWoken(heartbeatMs, wake.signal, signal))) yield ': still here\n\n'
    }
  } finally {
    unsubscribe()
  }
}

const isSame = (a: ClipState, b: ClipState) =>
  a.state === b.state && a.progress === b.progress && (a.files?.length ?? 0) === (b.files?.length ?? 0)

const toFileEvent = ({ kind, bytes }: { kind: string; bytes: number }) =>
  `event: file\ndata: ${JSON.stringify({ file: kind, bytes })}\n\n`

/** The state is also the event's name, and the id of the final event: a client that returns with it needs no more. */
function toEvent({ state, progress, errorCode }: ClipState): string {
  const failure = errorCode && { code: errorCode, message: errorCatalogue[errorCode].message }
  const data = { state, progress: state === 'ready' ? 1 : progress, ...(failure && { failure }) }
  return `${isFinal({ state }) ? `id: ${state}\n` : ''}event: ${state}\ndata: ${JSON.stringify(data)}\n\n`
}
