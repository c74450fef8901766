import { once } from 'node:events'
import { command } from '@services/common/cli'
import { NIL_UUID } from '../../db/uuid.ts'
import { onDatabase } from '../../on-database.ts'
import { findUsersAfter } from './export-users.store.ts'

const PAGE = 500

/** `users export`. Reads a page at a time: memory does not grow with the number of users. */
export const usersExport = command({
  name: 'users export',
  summary: 'print all users as JSON lines',
  options: { 'with-hashes': { meaning: 'with their password hashes' } },
  details:
    'The format of `users import`. The export is not a snapshot: users who sign up or change meanwhile may be missing.',
  run: async ({ options }) => {
    await onDatabase(async ({ db }) => {
      // Sorts before all ids.
      let after = NIL_UUID
      for (;;) {
        const page = await findUsersAfter(db, after, PAGE)
        for (const { user, password_hash: hash } of page) {
          const line = options['with-hashes'] && hash ? { ...user, password_hash: hash } : user
          if (!process.stdout.write(`${JSON.stringify(line)}\n`)) await once(process.stdout, 'drain')
        }
        const last = page.at(-1)
        if (!last) return
        after = last.user.id
      }
    })
  },
})
