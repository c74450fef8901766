import type { KyselyPlugin } from 'kysely'
import { expect } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, test } from '../../../test/service.ts'
import { createKnownFiles } from './known-files.ts'

test('a file that was looked up while its clip was deleted is not cached', async ({ service }) => {
  const id = idIn(await service.upload(gif(40, 20, [{ delay: 10 }])))
  const [asked, deleted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      asked.resolve()
      await deleted.promise
      return result
    },
  }
  const known = createKnownFiles(service.deps.db.withPlugin(slow))
  const before = known.find(id, 'gif')
  await asked.promise
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  known.evict(id)
  deleted.resolve()
  expect((await before)?.state).toBe('ready')
  expect((await known.find(id, 'gif'))?.state).toBe('deleted')
})
