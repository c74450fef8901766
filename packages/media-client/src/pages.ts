import { call, successOf } from './call.ts'
import type { Connection } from './exchange.ts'

/** Items of a list; further pages are requested as the loop comes to them. */
export async function* pagesOf<Item>(
  connection: Connection,
  path: string,
  parameters: Record<string, unknown>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | null | undefined
  do {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries({ ...parameters, cursor })) {
      if (value !== undefined) query.set(name, String(value))
    }
    const request = { method: 'GET', path: `${path}?${query}`, signal, isRepeatable: true }
    const page = successOf<{ items: Item[]; next_cursor: string | null }>(await call(connection, request))
    yield* page.items
    if (page.next_cursor === cursor) return
    cursor = page.next_cursor ?? undefined
  } while (cursor)
}
