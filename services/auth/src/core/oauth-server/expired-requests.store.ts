import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Deletes what expired before a moment: requests of applications and devices, and used proofs. */
export const deleteExpiredRequests = (
  db: Kysely<DB>,
  table: 'oauth_authorizations' | 'oauth_device_codes' | 'used_oauth_proofs',
  before: Date,
) => deleteInBatches(db, table, { column: 'expires_at', before })
