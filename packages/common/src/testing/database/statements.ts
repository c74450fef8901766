import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { vi } from 'vitest'

const asking = new AsyncLocalStorage<string[]>()

/** Texts of the statements that `ask` sends, without those that timers, jobs and other requests send meanwhile. */
export async function statementsOf(ask: () => Promise<unknown>): Promise<string[]> {
  const texts: string[] = []
  const { query } = pg.Client.prototype
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...given: unknown[]
  ) {
    const [asked] = given as [string | { text: string }]
    asking.getStore()?.push(typeof asked === 'string' ? asked : asked.text)
    return Reflect.apply(query, this, given)
  })
  try {
    await asking.run(texts, ask)
  } finally {
    spy.mockRestore()
  }
  return texts
}
