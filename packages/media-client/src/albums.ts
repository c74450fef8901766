// Albums of the token: made and changed, with their clips in an order.
import { call, successOf } from './call.ts'
import type { Connection } from './exchange.ts'
import { pagesOf } from './pages.ts'
import type { Album, AlbumFields, Clip } from './shapes.ts'

export interface Options {
  signal?: AbortSignal
}

export interface ChangeOptions extends Options {
  /** `etag` of the album as it was read: throws album_changed if another change was faster. */
  etag?: string | undefined
}

const JSON_BODY = { 'content-type': 'application/json' }

const pathOf = (...parts: string[]) => `/albums/${parts.map(encodeURIComponent).join('/')}`

export function albumsOf(connection: Connection, newKey: () => string) {
  const change = async (method: string, path: string, body: object | undefined, { signal, etag }: ChangeOptions) => {
    const text = body && { body: () => JSON.stringify(body) }
    const headers = { ...(body && JSON_BODY), ...(etag !== undefined && { 'if-match': etag }) }
    // A repeat after a lost answer would find the change of its first attempt.
    return call(connection, { method, path, headers, ...text, signal, isRepeatable: etag === undefined })
  }

  return {
    async create(fields: AlbumFields & { title: string }, { signal }: Options = {}): Promise<Album> {
      const headers = { ...JSON_BODY, 'idempotency-key': newKey() }
      const body = () => JSON.stringify(fields)
      return successOf(
        await call(connection, { method: 'POST', path: '/albums', headers, body, signal, isRepeatable: true }),
      )
    },

    async get(id: string, { signal }: Options = {}): Promise<Album> {
      const path = `${pathOf(id)}?limit=1`
      const found = await call(connection, { method: 'GET', path, signal, isRepeatable: true })
      const {
        items: _,
        next_cursor: __,
        ...album
      } = successOf<Album & { items: Clip[]; next_cursor: string | null }>(found)
      return album
    },

    /** Albums, newest first; further pages are requested as the loop comes to them. */
    list: ({ signal, pageSize }: Options & { pageSize?: number } = {}): AsyncGenerator<Album, void, undefined> =>
      pagesOf(connection, '/albums', { limit: pageSize }, signal),

    /** Clips of an album in their order. */
    clips: (id: string, { signal, pageSize }: Options & { pageSize?: number } = {}) =>
      pagesOf<Clip>(connection, pathOf(id), { limit: pageSize }, signal),

    async update(id: string, changes: AlbumFields, options: ChangeOptions = {}): Promise<Album> {
      return successOf(await change('PATCH', pathOf(id), changes, options))
    },

    /** Deletes an album; its clips stay. */
    async delete(id: string, { signal }: Options = {}): Promise<void> {
      await call(connection, { method: 'DELETE', path: pathOf(id), signal, isRepeatable: true, doneStatus: 404 })
    },

    /** Replaces and orders the clips. */
    async setClips(id: string, ids: readonly string[], options: ChangeOptions = {}): Promise<Album> {
      return successOf(await change('PUT', pathOf(id, 'items'), { ids }, options))
    },

    /** Adds clips at the end, or before another one. */
    async addClips(
      id: string,
      ids: readonly string[],
      { before, ...options }: ChangeOptions & { before?: string } = {},
    ): Promise<Album> {
      return successOf(await change('POST', pathOf(id, 'items'), { ids, before }, options))
    },

    /** Takes a clip out; it stays. */
    async removeClip(id: string, clip: string, { signal }: Options = {}): Promise<void> {
      const path = pathOf(id, 'items', clip)
      await call(connection, { method: 'DELETE', path, signal, isRepeatable: true, doneStatus: 404 })
    },
  }
}
