// Calls of administrators: the queue, dead letters, stored files, settings, acts, and the use of tokens. They need a
// token with the scope `admin`.

import type {
  AuditEntry,
  AuditFilter,
  DeadLetter,
  QueueState,
  ServiceSettings,
  StorageState,
  StoredCheck,
  TokenDay,
  TokenSession,
} from './administration-shapes.ts'
import { call, successOf } from './call.ts'
import type { CallOptions, Connection } from './exchange.ts'

export function administrationOf(connection: Connection) {
  const read = async <Result>(path: string, { signal }: CallOptions): Promise<Result> =>
    successOf(await call(connection, { method: 'GET', path, signal, isRepeatable: true }))

  async function* pages<Item>(
    path: string,
    filter: object,
    options: CallOptions,
  ): AsyncGenerator<Item, void, undefined> {
    let cursor: string | undefined
    do {
      const query = new URLSearchParams()
      for (const [name, value] of Object.entries({ ...filter, cursor })) if (value) query.set(name, String(value))
      const page = await read<{ items: Item[]; next_cursor: string | null }>(`${path}?${query}`, options)
      yield* page.items
      cursor = page.next_cursor ?? undefined
    } while (cursor)
  }

  const token = (id: string, rest: string) => `/tokens/${encodeURIComponent(id)}/${rest}`
  const dead = (id: string) => `/queue/dead/${encodeURIComponent(id)}`

  return {
    queue: (options: CallOptions = {}): Promise<QueueState> => read('/queue', options),

    /** Jobs and deliveries that were given up, newest first. */
    deadLetters: (options: CallOptions = {}) => pages<DeadLetter>('/queue/dead', {}, options),

    /** Not repeated after a lost answer: the dead letter may be gone, or given up again. */
    async retryDeadLetter(id: string, { signal }: CallOptions = {}): Promise<void> {
      await call(connection, { method: 'POST', path: `${dead(id)}/retry`, signal, isRepeatable: false })
    },

    async deleteDeadLetter(id: string, { signal }: CallOptions = {}): Promise<void> {
      await call(connection, { method: 'DELETE', path: dead(id), signal, isRepeatable: true, doneStatus: 404 })
    },

    storage: (options: CallOptions = {}): Promise<StorageState> => read('/storage', options),

    /** Begins a check of the stored files, or returns the one that runs. */
    async checkStorage({ signal }: CallOptions = {}): Promise<StoredCheck> {
      return successOf(await call(connection, { method: 'POST', path: '/storage/check', signal, isRepeatable: true }))
    },

    settings: (options: CallOptions = {}): Promise<ServiceSettings> => read('/settings', options),

    /** Acts of administrators and commands, newest first. */
    audit: ({ signal, ...filter }: AuditFilter & CallOptions = {}) =>
      pages<AuditEntry>('/audit', filter, signal ? { signal } : {}),

    /** Days on which a token was used, oldest first; 400 at most, the last 30 without `from`. */
    async tokenUsage(
      id: string,
      { signal, ...span }: { from?: string; to?: string } & CallOptions = {},
    ): Promise<TokenDay[]> {
      const query = new URLSearchParams(Object.entries(span))
      return (await read<{ days: TokenDay[] }>(token(id, `usage?${query}`), signal ? { signal } : {})).days
    },

    async tokenSessions(id: string, options: CallOptions = {}): Promise<TokenSession[]> {
      return (await read<{ items: TokenSession[] }>(token(id, 'sessions'), options)).items
    },

    /** Signs out the browsers of a token; returns their number. */
    async endTokenSessions(id: string, { signal }: CallOptions = {}): Promise<number> {
      const request = { method: 'DELETE', path: token(id, 'sessions'), signal, isRepeatable: true }
      return successOf<{ ended: number }>(await call(connection, request)).ended
    },
  }
}
