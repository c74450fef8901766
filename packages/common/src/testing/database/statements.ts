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
    asking.getStore()?.push(textOf(given))
    return Reflect.apply(query, this, given)
  })
  try {
    await asking.run(texts, ask)
  } finally {
    spy.mockRestore()
  }
  return texts
}

/**
 * Texts of a request's statements until all its jobs are done, without those that match `others`. Jobs run outside of
 * their request, as timers do, so the whole process is observed.
 */
export async function statementsWithJobs(
  service: { settled(): Promise<void> },
  ask: () => Promise<unknown>,
  others: RegExp,
): Promise<string[]> {
  const spy = vi.spyOn(pg.Client.prototype, 'query')
  try {
    await ask()
    await service.settled()
    return (spy.mock.calls as unknown[][]).map(textOf).filter((text) => !others.test(text))
  } finally {
    spy.mockRestore()
  }
}

function textOf([asked]: unknown[]): string {
  return typeof asked === 'string' ? asked : (asked as { text: string }).text
}
