// Requests to the storage inside a transaction throw in every test. While the storage hangs, they would hold a
// connection of the pool, and locks.
import { AsyncLocalStorage } from 'node:async_hooks'
import { TransactionBuilder } from 'kysely'
import type { BlobStorage } from '../../src/store/blobs/blob-storage.ts'

type Execute = (work: (trx: never) => Promise<unknown>) => Promise<unknown>

const transactions = new AsyncLocalStorage<true>()
const builder = TransactionBuilder.prototype as unknown as { execute: Execute }
const { execute } = builder
builder.execute = function (work) {
  return execute.call(this, (trx) => transactions.run(true, () => work(trx)))
}

export function refuseInTransactions(blobs: BlobStorage): void {
  const methods = blobs as unknown as Record<string, (...args: unknown[]) => unknown>
  for (const [name, method] of Object.entries(methods)) {
    methods[name] = (...args) => {
      if (transactions.getStore()) throw new Error(`${name} of the storage inside a transaction`)
      return method(...args)
    }
  }
}
