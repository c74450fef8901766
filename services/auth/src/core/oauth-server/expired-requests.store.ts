import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Deletes what expired before a moment: requests of applications and devices, and used proofs. */
export const deleteExpiredRequests = (
  db: Kysely<DB>,
  table: 'oauth_authorizations' | 'oauth_device_codes' | 'used_oauth_proofs',
  before: Date,
) => deleteInBatches(db, table, { column: 'expires_at', before })

/** Deletes notices of ended sessions that have had their attempts, or that an OAuth server disabled since has left. */
export const deleteOldNotices = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'oauth_logout_notices', { column: 'created_at', before })
